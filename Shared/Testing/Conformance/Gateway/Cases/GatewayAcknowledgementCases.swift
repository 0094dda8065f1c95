import DeviceProtocol
import SwiftProtobuf

/// Acknowledgements, confirmations and resends.
enum GatewayAcknowledgementCases {
    private static let rule = "Acknowledgement"
    /// Time limit for the recording of a sync point, which goes through the gateway's queues.
    private static let recordLimit = Duration.seconds(10)

    static let all: [GatewayCase] = [
        GatewayCase("ack/unacknowledged-comes-again", rule) { target in
            let identity = target.fresh()
            let ids = try await target.api.push(["a", "b", "c"], to: identity.user)
            for _ in 0..<3 {
                let device = try await target.open(identity)
                try await device.expect(exactly: ids)
                device.connection.cut()
            }
        },
        GatewayCase("ack/acknowledged-does-not", rule) { target in
            let identity = target.fresh()
            let ids = try await target.api.push((0..<6).map { "\($0)" }, to: identity.user)
            let device = try await target.open(identity)
            try await device.expect(exactly: ids)
            device.acknowledge(upto: ids[3])
            try await device.leave()
            try await expectRecorded(target, identity, rest: Array(ids[4...]))
        },
        GatewayCase("ack/above-what-was-sent", rule, aboveWhatWasSent),
        GatewayCase("ack/falling", rule) { target in
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
        GatewayCase("ack/older-store-gets-again", rule, olderStore),
        GatewayCase("ack/unknown-channel", rule) { target in
            let device = try await target.open(target.fresh())
            device.acknowledge(upto: 5, bizType: "NO-SUCH-TYPE")
            device.acknowledge(upto: 5, kind: .globalDevice)
            device.connection.send(.with { $0.storedAck.rereads = [1, UInt64.max] })
            try await device.expectAlive()
        },
        GatewayCase("ack/empty", rule) { target in
            let device = try await target.open(target.fresh())
            device.connection.send(.with { $0.storedAck = .init() })
            try await device.expectAlive()
        },
        GatewayCase("confirm/answered", rule) { target in
            let device = try await target.open(target.fresh())
            let ids = try await target.api.push(["a", "b"], to: device.identity.user)
            try await device.expect(exactly: ids)
            device.acknowledge(upto: ids[1])
            try await device.confirm([ids[1]], report: UInt64.max)
            try await device.confirm([ids[0]], report: 3)
        },
        GatewayCase("confirm/repeated", rule) { target in
            let device = try await target.open(target.fresh())
            let ids = try await target.api.push(["a"], to: device.identity.user)
            try await device.expect(exactly: ids)
            device.acknowledge(upto: ids[0])
            try await device.confirm(ids, report: 1)
            try await device.confirm(ids, report: 2)
            try await device.confirm(ids, report: 2)
        },
        GatewayCase("confirm/of-nothing-known", rule) { target in
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
        GatewayCase("resend/simple-device", "The resend ladder", simpleDevice),
    ]

    /// Checks that a simple device, which keeps no position, receives exactly `rest` after the gateway has recorded the
    /// acknowledgement.
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

    /// A store that reports a position below its acknowledgement is an older copy.
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
        guard firstWait <= 12_000 else { throw NotSupported("first_resend_ms is too long for this case: \(firstWait)") }
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
}
