import DeviceProtocol
import SwiftProtobuf

/// Ids, binds, newer connections.
extension GatewayCases {
    /// Texts that are no id, by name.
    private static let badIDs = [
        ("empty", ""), ("too-long", String(repeating: "i", count: 101)), ("nul", "a\0b"),
        ("too-long-in-utf-16", String(repeating: "\u{1F600}", count: 51)),
    ]

    static let identity: [Case] =
        badIDs.flatMap { name, text in
            [
                Case("ids/device-\(name)", "A connection's life") { target in
                    try await expectRefused(target) { $0.deviceID = text }
                },
                Case("ids/store-\(name)", "A connection's life") { target in
                    try await expectRefused(target) { $0.storeID = text }
                },
            ]
        } + [
            Case("ids/longest", "A connection's life", longestIDs),
            Case("ids/user-too-long", "A connection's life") { target in
                try await expectBindRefused(target) { $0.userID = String(repeating: "u", count: 101) }
            },
            Case("ids/session-too-long", "A connection's life") { target in
                try await expectBindRefused(target) { $0.sessionID = String(repeating: "s", count: 4_097) }
            },
            Case("ids/unknown-instance", "Close codes") { target in
                var identity = target.fresh()
                identity.instance = "no_such_instance"
                let connection = try await target.connect()
                connection.send(identity.connect)
                try await expectClose(5001, on: connection)
            },
            Case("connection/newer-one-of-the-device", "Close codes", newerConnection),
            Case("connection/newer-version", "Versions") { target in
                _ = try await target.open(target.fresh()) { $0.protocolVersion = 4_000_000_000 }
            },
            Case("bind/without-a-user", "Bind") { target in
                let device = try await target.open(target.fresh(), binds: false)
                try await device.expectAlive()
                try Mismatch.unless(
                    !device.connection.packets.contains { if case .bindResult = $0.body { true } else { false } },
                    "no BindResult", seen: device.connection.summary)
            },
            Case("bind/numbers-may-skip", "Bind") { target in
                let device = try await target.open(target.fresh())
                device.connection.send(device.identity.bindFrame(4_000_000_000))
                try await device.expectBound(4_000_000_000)
            },
            Case("bind/falling-number", "Bind") { target in
                let device = try await target.open(target.fresh())
                device.connection.send(device.identity.bindFrame(5))
                try await device.expectBound(5)
                device.connection.send(device.identity.bindFrame(4))
                try await expectClose(5000, on: device.connection)
            },
            Case("bind/number-0-in-connect", "Bind") { target in
                try await expectRefused(target) { $0.bind = .with { $0.userID = "cf-u" } }
            },
            Case("bind/unbind", "Bind", unbind),
            Case("bind/user-switch", "Bind", userSwitch),
            Case("bind/late-acknowledgement", "Bind", lateAcknowledgement),
        ]

    private static func expectRefused(
        _ target: GatewayTarget, _ change: (inout Mss_Device_V1_Connect) -> Void
    ) async throws {
        let connection = try await target.connect()
        var packet = target.fresh().connect
        change(&packet.connect)
        connection.send(packet)
        try await expectClose(5000, on: connection)
    }

    private static func expectBindRefused(
        _ target: GatewayTarget, _ change: (inout Mss_Device_V1_Bind) -> Void
    ) async throws {
        let device = try await target.open(target.fresh(), binds: false)
        var packet = device.identity.bindFrame(1)
        change(&packet.bind)
        device.connection.send(packet)
        try await expectClose(5000, on: device.connection)
        let results = device.connection.packets.compactMap {
            if case .bindResult(let result)? = $0.body { result } else { nil }
        }
        try Mismatch.unless(
            results.map(\.accepted) == [false] && results.map(\.bindNumber) == [1],
            "BindResult 1 refused before Close 5000", seen: device.connection.summary)
    }

    private static func longestIDs(_ target: GatewayTarget) async throws {
        let mark = target.fresh().device
        let longest = mark + String(repeating: "\u{1F600}", count: (100 - mark.utf16.count) / 2)
        let filled = longest + String(repeating: "x", count: 100 - longest.utf16.count)
        var identity = target.fresh()
        (identity.device, identity.store, identity.user) = (filled, filled, filled)
        let device = try await target.open(identity)
        let ids = try await target.api.push(["long"], to: filled)
        try await device.expect(exactly: ids)
    }

    private static func newerConnection(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let old = try await target.open(identity)
        let young = try await target.open(identity)
        try await expectClose(5002, on: old.connection)
        let ids = try await target.api.push(["for the newer one"], to: identity.user)
        try await young.expect(exactly: ids)
        try Mismatch.unless(old.batches.isEmpty, "nothing on the older connection", seen: old.connection.summary)
    }

    private static func unbind(_ target: GatewayTarget) async throws {
        let device = try await target.open(target.fresh())
        device.connection.send(.with { $0.bind.bindNumber = 2 })
        try await device.expectBound(2)
        _ = try await target.api.push(["for nobody here"], to: device.identity.user)
        try await device.connection.linger(.milliseconds(500))
        try Mismatch.unless(device.batches.isEmpty, "nothing of an unbound user", seen: device.connection.summary)
    }

    private static func userSwitch(_ target: GatewayTarget) async throws {
        let (first, second) = (target.fresh(), target.fresh())
        let waiting = try await target.api.push(["s1", "s2"], to: second.user)
        // A backlog that fills the window, so that frames of the first user are on their way at the switch.
        _ = try await target.api.push((0..<100).map { filler($0) }, to: first.user)
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
            let ledger = try ChannelLedger().taking(batches)
            return ledger.position >= live[0] ? ledger : nil
        }
        try Mismatch.unless(ofSecond.ids == waiting + live, "\(waiting + live)", seen: "\(ofSecond.ids)")
        try await device.expectCaughtUp(2)
    }

    /// Batches that came after the answer to a bind.
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
        // Bind 1 is history, even though it was the same user's.
        device.acknowledge(upto: ids[1], bind: 1)
        try await device.expectAlive()
        try await device.connection.linger(.seconds(1))
        try await device.leave()
        try await target.open(identity).expect(exactly: ids)
    }

    /// About 4 KiB, with its number in front.
    static func filler(_ number: Int) -> String { "\(number) " + String(repeating: "f", count: 4_080) }
}
