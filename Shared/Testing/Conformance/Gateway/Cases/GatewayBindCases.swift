import DeviceProtocol
import SwiftProtobuf

/// Binds of users and user sessions.
enum GatewayBindCases {
    private static let rule = "Bind"

    static let all: [GatewayCase] = [
        GatewayCase("bind/without-a-user", rule) { target in
            let device = try await target.open(target.fresh(), binds: false)
            try await device.expectAlive()
            try Mismatch.unless(
                !device.connection.packets.contains { if case .bindResult = $0.body { true } else { false } },
                "no BindResult", seen: device.connection.summary)
        },
        GatewayCase("bind/numbers-may-skip", rule) { target in
            let device = try await target.open(target.fresh())
            device.connection.send(device.identity.bindFrame(4_000_000_000))
            try await device.expectBound(4_000_000_000)
        },
        GatewayCase("bind/falling-number", rule) { target in
            let device = try await target.open(target.fresh())
            device.connection.send(device.identity.bindFrame(5))
            try await device.expectBound(5)
            device.connection.send(device.identity.bindFrame(4))
            try await device.connection.expectClose(5000)
        },
        GatewayCase("bind/number-0-in-connect", rule) { target in
            try await target.expectRefused { $0.bind = .with { $0.userID = "cf-u" } }
        },
        GatewayCase("bind/unbind", rule, unbind),
        GatewayCase("bind/user-switch", rule, userSwitch),
        GatewayCase("bind/late-acknowledgement", rule, lateAcknowledgement),
    ]

    private static func unbind(_ target: GatewayTarget) async throws {
        let device = try await target.open(target.fresh())
        device.connection.send(.with { $0.bind.bindNumber = 2 })
        try await device.expectBound(2)
        _ = try await target.api.push(["for an unbound user"], to: device.identity.user)
        try await device.connection.linger(.milliseconds(500))
        try Mismatch.unless(device.batches.isEmpty, "nothing of an unbound user", seen: device.connection.summary)
    }

    private static func userSwitch(_ target: GatewayTarget) async throws {
        let (first, second) = (target.fresh(), target.fresh())
        let waiting = try await target.api.push(["s1", "s2"], to: second.user)
        // A backlog that fills the window, so that frames of the first user are in transit at the switch.
        _ = try await target.api.pushFillers(100, to: first.user)
        let device = try await target.open(first)
        _ = try await device.connection.find("a push of the first user") { _ in device.batches.first }
        var other = first
        other.user = second.user
        device.connection.send(other.bindFrame(2))
        try await device.expectBound(2)
        _ = try await target.api.push(["late"], to: first.user)
        let live = try await target.api.push(["s3"], to: second.user)
        let ofSecond = try await device.connection.find("the second user's oplogs") { packets in
            let batches = try afterBind(2, packets).filter { $0.bizType == device.bizType }
            try Mismatch.unless(
                batches.allSatisfy { $0.bindNumber == 2 }, "no frame of the former user after BindResult 2",
                seen: device.connection.summary)
            let ledger = try ChannelLedger().applying(batches)
            return ledger.position >= live[0] ? ledger : nil
        }
        try Mismatch.unless(ofSecond.ids == waiting + live, "\(waiting + live)", seen: "\(ofSecond.ids)")
        try await device.expectCaughtUp(2)
    }

    /// Batches after the result of a bind.
    private static func afterBind(
        _ number: UInt32, _ packets: [Mss_Device_V1_Packet]
    ) throws -> [Mss_Device_V1_ChannelBatch] {
        let index = packets.firstIndex { $0.bindResult.bindNumber == number } ?? packets.endIndex
        return packets[index...].flatMap(\.push.batches)
    }

    private static func lateAcknowledgement(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let ids = try await target.api.push(["a", "b"], to: identity.user)
        let device = try await target.open(identity)
        try await device.expect(exactly: ids)
        device.connection.send(identity.bindFrame(2))
        try await device.expectBound(2)
        // Bind 1 is no longer current, although it has the same user.
        device.acknowledge(upto: ids[1], bind: 1)
        try await device.expectAlive()
        try await device.connection.linger(.seconds(1))
        try await device.leave()
        try await target.open(identity).expect(exactly: ids)
    }
}
