import DeviceProtocol
import SwiftProtobuf

/// Acknowledgements, confirmations, flow control.
extension GatewayCases {
    private static let rule = "Acknowledgement"
    /// The recording of a sync point goes through the gateway's queues: so long a kit waits for it.
    private static let recordLimit = Duration.seconds(10)

    static let acknowledgement: [Case] = [
        Case("ack/unacknowledged-comes-again", rule) { target in
            let identity = target.fresh()
            let ids = try await target.api.push(["a", "b", "c"], to: identity.user)
            for _ in 0..<3 {
                let device = try await target.open(identity)
                try await device.expect(exactly: ids)
                device.connection.cut()
            }
        },
        Case("ack/acknowledged-does-not", rule) { target in
            let identity = target.fresh()
            let ids = try await target.api.push((0..<6).map { "\($0)" }, to: identity.user)
            let device = try await target.open(identity)
            try await device.expect(exactly: ids)
            device.acknowledge(upto: ids[3])
            try await device.leave()
            try await expectRecorded(target, identity, rest: Array(ids[4...]))
        },
        Case("ack/above-what-was-sent", rule, aboveWhatWasSent),
        Case("ack/falling", rule) { target in
            let identity = target.fresh()
            let ids = try await target.api.push(["a", "b", "c"], to: identity.user)
            let device = try await target.open(identity)
            try await device.expect(exactly: ids)
            device.acknowledge(upto: ids[2])
            device.acknowledge(upto: ids[0])
            device.acknowledge(upto: 0)
            try await device.leave()
            try await expectRecorded(target, identity, rest: [])
        },
        Case("ack/older-store-gets-again", rule, olderStore),
        Case("ack/unknown-channel", rule) { target in
            let device = try await target.open(target.fresh())
            device.acknowledge(upto: 5, bizType: "NO-SUCH-TYPE")
            device.acknowledge(upto: 5, kind: .globalDevice)
            device.connection.send(.with { $0.storedAck.rereads = [1, UInt64.max] })
            try await device.expectAlive()
        },
        Case("ack/empty", rule) { target in
            let device = try await target.open(target.fresh())
            device.connection.send(.with { $0.storedAck = .init() })
            try await device.expectAlive()
        },
        Case("confirm/answered", rule) { target in
            let device = try await target.open(target.fresh())
            let ids = try await target.api.push(["a", "b"], to: device.identity.user)
            try await device.expect(exactly: ids)
            device.acknowledge(upto: ids[1])
            try await device.confirm([ids[1]], report: UInt64.max)
            try await device.confirm([ids[0]], report: 3)
        },
        Case("confirm/repeated", rule) { target in
            let device = try await target.open(target.fresh())
            let ids = try await target.api.push(["a"], to: device.identity.user)
            try await device.expect(exactly: ids)
            device.acknowledge(upto: ids[0])
            try await device.confirm(ids, report: 1)
            try await device.confirm(ids, report: 2)
            try await device.confirm(ids, report: 2)
        },
        Case("confirm/of-nothing-known", rule) { target in
            let device = try await target.open(target.fresh())
            try await device.confirm([5, 1 << 52], report: 1)
            device.connection.send(
                .with {
                    $0.confirmReport.reportID = 2
                    $0.confirmReport.resent = [
                        .with {
                            $0.bizType = "NO-SUCH-TYPE"
                            $0.oplogID = 9
                            $0.attempts = UInt32.max
                            $0.dead = true
                        }
                    ]
                })
            try await device.expectRecorded(2, times: 1)
        },
        Case("resend/simple-device", "The resend ladder", simpleDevice),
    ]

    /// Connections that keep no position, as simple devices do not, get exactly this once the gateway has recorded the
    /// rest.
    private static func expectRecorded(
        _ target: GatewayTarget, _ identity: DeviceIdentity, rest: [Int64]
    ) async throws {
        let deadline = ContinuousClock.now + recordLimit
        while true {
            let device = try await target.open(identity) { $0.simple = true }
            try await device.expectCaughtUp()
            let seen = device.batches.flatMap(\.entries).map(\.oplogID)
            if seen == rest { return }
            guard .now < deadline else { throw Mismatch(expected: "only \(rest) again", seen: "\(seen)") }
            device.connection.cut()
            try await device.connection.linger(.milliseconds(200))
        }
    }

    /// A store that claims less than it has acknowledged is an older copy of itself.
    private static func olderStore(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let ids = try await target.api.push(["a", "b", "c"], to: identity.user)
        let device = try await target.open(identity)
        try await device.expect(exactly: ids)
        device.acknowledge(upto: ids[2])
        try await device.leave()
        try await expectRecorded(target, identity, rest: [])
        let older = try await target.open(identity, position: ids[0])
        try await older.expect(exactly: Array(ids[1...]))
        let batch = older.batches.first
        try Mismatch.unless(
            batch?.after == ids[0] && batch?.againUpto == ids[2], "after \(ids[0]), again_upto \(ids[2])",
            seen: PacketSummary.text(of: .with { $0.push.batches = older.batches }))
    }

    private static func aboveWhatWasSent(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let device = try await target.open(identity)
        let ids = try await target.api.push(["a"], to: identity.user)
        try await device.expect(exactly: ids)
        device.acknowledge(upto: (1 << 53) - 1)
        try await device.expectAlive()
        let later = try await target.api.push(["b"], to: identity.user)
        try await device.expect(exactly: ids + later)
        try await device.leave()
        try await expectRecorded(target, identity, rest: later)
    }

    private static func simpleDevice(_ target: GatewayTarget) async throws {
        let device = try await target.open(target.fresh()) { $0.simple = true }
        let firstWait = device.greeting.firstResendMs == 0 ? 10_000 : device.greeting.firstResendMs
        guard firstWait <= 12_000 else { throw NotSupported("first_resend_ms is too long to wait for: \(firstWait)") }
        let ids = try await target.api.push(["a"], to: device.identity.user)
        let limit = Duration.milliseconds(Int64(firstWait)) + .seconds(8)
        let again = try await device.connection.find("the batch again with attempt 2", within: limit) { _ in
            device.batches.first { $0.entries.contains { $0.attempt == 2 } }
        }
        try Mismatch.unless(
            again.entries.map(\.oplogID) == ids && again.after == 0 && again.upto == ids[0], "the same batch",
            seen: PacketSummary.text(of: again))
        device.acknowledge(upto: ids[0])
    }

    // MARK: Flow

    static let flow: [Case] = [
        Case("flow/window", "Framing", window),
        Case("flow/frame-size", "Framing", frameSize),
        Case("flow/half-open", "Framing", halfOpen),
    ]

    private static func window(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let ids = try await target.api.push((0..<300).map { filler($0) }, to: identity.user)
        let device = try await target.open(identity)
        let held = try await heldBack(device)
        let payloads = device.batches.map { $0.entries.reduce(0) { $0 + $1.payload.count } }
        // The gateway pauses when the window is full; the batch that fills it may reach beyond.
        let before = payloads.reduce(0, +) - (payloads.last ?? 0)
        try Mismatch.unless(
            before < 256 * 1_024, "at most 256 KiB and one batch without an acknowledgement",
            seen: "\(payloads.reduce(0, +)) bytes in batches of \(payloads)")
        try Mismatch.unless(held < ids.count, "a pause before the end", seen: "all \(held) oplogs")
        let ledger = try await drain(device, upto: ids[299])
        try Mismatch.unless(ledger.ids == ids, "300 oplogs, each once", seen: "\(ledger.ids.count)")
        try await device.expectCaughtUp()
    }

    /// Oplogs that came until nothing more came for a while.
    private static func heldBack(_ device: ScriptedDevice) async throws -> Int {
        var seen = -1
        while true {
            let now = device.batches.reduce(0) { $0 + $1.entries.count }
            if now == seen, now > 0 { return now }
            seen = now
            try await device.connection.linger(.seconds(1))
        }
    }

    private static func frameSize(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let ids = try await target.api.push((0..<60).map { filler($0) }, to: identity.user)
        let device = try await target.open(identity)
        _ = try await drain(device, upto: ids[59])
        for packet in device.connection.packets {
            let bytes = FrameBytes.of([packet]).count - 4
            try Mismatch.unless(bytes <= 1_048_576, "frames of at most 1 MiB", seen: "\(bytes) bytes")
            try Mismatch.unless(
                bytes <= 65_536 || packet.push.batches.count == 1, "push frames that end at 64 KiB",
                seen: "\(bytes) bytes with \(packet.push.batches.count) batches")
        }
    }

    private static func halfOpen(_ target: GatewayTarget) async throws {
        let (stuck, well) = (target.fresh(), target.fresh())
        let ids = try await target.api.push((0..<200).map { filler($0) }, to: stuck.user)
        let deaf = try await target.open(stuck)
        try await deaf.connection.setReading(false)
        let healthy = try await target.open(well)
        try await healthy.expectCaughtUp()
        for number in 0..<5 {
            let id = try await target.api.push(["\(number)"], to: well.user)
            _ = try await healthy.expect(upto: id[0], within: .seconds(3))
        }
        try await deaf.connection.setReading(true)
        let ledger = try await drain(deaf, upto: ids[199])
        try Mismatch.unless(ledger.ids == ids, "200 oplogs, each once", seen: "\(ledger.ids.count)")
    }
}
