import DeviceProtocol
import SwiftProtobuf

/// Delivery of oplogs, and their tombstones.
enum GatewayDeliveryCases {
    private static let rule = "Channels, positions, batches"

    static let all: [GatewayCase] = [
        GatewayCase("delivery/live", rule, live),
        GatewayCase("delivery/live-in-order", rule) { target in
            let device = try await target.open(target.fresh())
            try await device.expectCaughtUp()
            var ids: [Int64] = []
            for number in 0..<10 { ids += try await target.api.push(["\(number)"], to: device.identity.user) }
            try await device.expect(exactly: ids)
        },
        GatewayCase("delivery/offline-queueing", rule, offlineQueueing),
        GatewayCase("delivery/several-devices-of-a-user", rule, severalDevices),
        GatewayCase("delivery/position-of-the-device", rule, positionOfTheDevice),
        GatewayCase("delivery/position-above-the-channel", "Security") { target in
            let identity = target.fresh()
            let ids = try await target.api.push(["a"], to: identity.user)
            // A wrong position affects this device only. Another device of the user receives the data.
            let liar = try await target.open(identity, position: 1 << 52)
            try await liar.expectCaughtUp()
            try await liar.leave()
            let honest = try await target.open(identity.otherDevice())
            try await honest.expect(exactly: ids)
        },
        GatewayCase("delivery/caught-up-after-the-backlog", rule, caughtUp),
        GatewayCase("delivery/largest-text", "Framing") { target in
            try await expectPayloads(target, [String(repeating: "\u{20AC}", count: 4_096), "\u{1F600}\n\"\\"])
        },
        GatewayCase("delivery/largest-bytes", "Framing") { target in
            let device = try await target.open(target.fresh())
            let bytes = (0..<3_072).map { UInt8(truncatingIfNeeded: $0) }
            let id = try await target.api.push(binary: bytes, to: device.identity.user)
            let ledger = try await device.expect(exactly: [id])
            try Mismatch.unless(
                ledger.entries.allSatisfy { $0.binary && Array($0.payload) == bytes }, "the same 3,072 bytes, binary",
                seen: "different bytes")
        },
        GatewayCase("delivery/device-kind", rule, deviceKind),
        GatewayCase("delivery/takeover-in-a-backlog", "Acknowledgement", takeover),
        GatewayCase("delivery/tombstone", "Tombstones", tombstone),
        GatewayCase("delivery/recalled-while-away", "Tombstones", recalledWhileAway),
    ]

    private static func live(_ target: GatewayTarget) async throws {
        let device = try await target.open(target.fresh())
        try await device.expectCaughtUp()
        let key = "cf-\(device.identity.user)"
        let first = try await target.api.push("hello", to: device.identity.user, key: key)
        let ledger = try await device.expect(exactly: [first])
        let entry = ledger.entries[0]
        let batch = device.batches[0]
        try Mismatch.unless(
            String(decoding: entry.payload, as: UTF8.self) == "hello" && !entry.binary
                && entry.thirdMessageID == key && entry.createdAtMs > 1_600_000_000_000 && entry.recalls == 0
                && entry.attempt <= 1,
            "the text, its thirdMsgId and time, no attempt above 1", seen: "\(entry)")
        try Mismatch.unless(
            batch.kind == .user && batch.bindNumber == 1 && batch.after == 0 && batch.reread == 0,
            "kind user, bind 1, after 0", seen: PacketSummary.text(of: batch))
        device.acknowledge(upto: first)
        let second = try await target.api.push(["next"], to: device.identity.user)
        _ = try await device.expect(exactly: [first] + second)
        let next = device.batches.last
        try Mismatch.unless(
            next?.after == first && next?.upto == second[0], "after \(first), upto \(second[0])",
            seen: next.map { PacketSummary.text(of: $0) } ?? "nothing")
    }

    private static func offlineQueueing(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let early = try await target.api.push((0..<20).map { "early \($0)" }, to: identity.user)
        let first = try await target.open(identity)
        try await first.expect(exactly: early)
        first.acknowledge(upto: early[19])
        try await first.leave()
        let away = try await target.api.push((0..<20).map { "away \($0)" }, to: identity.user)
        try await target.open(identity, position: early[19]).expect(exactly: away)
    }

    private static func severalDevices(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let one = try await target.open(identity)
        let two = try await target.open(identity.otherDevice())
        let ids = try await target.api.push(["a", "b", "c"], to: identity.user)
        try await one.expect(exactly: ids)
        one.acknowledge(upto: ids[2])
        try await two.expect(exactly: ids)
        let three = try await target.open(identity.otherDevice())
        try await three.expect(exactly: ids)
    }

    private static func positionOfTheDevice(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let ids = try await target.api.push((0..<5).map { "\($0)" }, to: identity.user)
        let device = try await target.open(identity, position: ids[1])
        try await device.expect(exactly: Array(ids[2...]))
        try Mismatch.unless(
            device.batches.allSatisfy { $0.after >= ids[1] }, "nothing from below \(ids[1])",
            seen: device.connection.summary)
    }

    private static func caughtUp(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let ids = try await target.api.push((0..<150).map { "\($0)" }, to: identity.user)
        let device = try await target.open(identity)
        try await device.expectCaughtUp()
        let packets = device.connection.packets
        let index = packets.firstIndex { if case .caughtUp = $0.body { true } else { false } } ?? 0
        let before = try ChannelLedger().applying(
            packets[..<index].flatMap(\.push.batches).filter { $0.bizType == device.bizType })
        try Mismatch.unless(before.ids == ids, "150 oplogs before CaughtUp", seen: "\(before.ids.count)")
    }

    private static func expectPayloads(_ target: GatewayTarget, _ texts: [String]) async throws {
        let device = try await target.open(target.fresh())
        let ids = try await target.api.push(texts, to: device.identity.user)
        let ledger = try await device.expect(exactly: ids)
        try Mismatch.unless(
            ledger.entries.map { String(decoding: $0.payload, as: UTF8.self) } == texts, "the same texts",
            seen: "different texts")
    }

    private static func deviceKind(_ target: GatewayTarget) async throws {
        guard let bizType = target.deviceBizType else { throw NotSupported("--device-biz-type is missing") }
        let identity = target.fresh()
        let early = try await target.api.push(["d1"], to: identity.device, bizType: bizType)
        let device = try await target.open(identity, binds: false)
        func expect(_ ids: [Int64], from position: Int64, on connection: FrameConnection) async throws {
            _ = try await connection.find("\(bizType) \(ids)") { _ in
                let batches = connection.batches.filter { $0.bizType == bizType }
                try Mismatch.unless(
                    batches.allSatisfy { $0.kind == .device && $0.bindNumber == 0 }, "kind device, bind 0",
                    seen: connection.summary)
                return try ChannelLedger(position: position).applying(batches).ids == ids ? true : nil
            }
        }
        try await expect(early, from: 0, on: device.connection)
        let later = try await target.api.push(["d2"], to: identity.device, bizType: bizType)
        try await expect(early + later, from: 0, on: device.connection)
        device.acknowledge(upto: later[0], bind: 0, bizType: bizType, kind: .device)
        try await device.leave()
        let away = try await target.api.push(["d3"], to: identity.device, bizType: bizType)
        let again = try await target.open(identity) {
            $0.syncPoints = [
                .with {
                    $0.kind = .device
                    $0.bizType = bizType
                    $0.oplogID = later[0]
                }
            ]
        }
        try await expect(away, from: later[0], on: again.connection)
    }

    private static func takeover(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let ids = try await target.api.pushFillers(200, to: identity.user)
        let old = try await target.open(identity)
        let part = try await old.connection.find("the beginning of the backlog") { _ in
            let ledger = try old.ledger()
            return ledger.ids.isEmpty ? nil : ledger
        }
        old.acknowledge(upto: part.position)
        let young = try await target.open(identity, position: part.position)
        try await old.connection.expectClose(5002)
        let rest = try await young.drain(upto: ids[199])
        try Mismatch.unless(
            part.ids + rest.ids == ids, "200 oplogs on both connections together, each once",
            seen: "\(part.ids.count) and \(rest.ids.count)")
    }

    private static func tombstone(_ target: GatewayTarget) async throws {
        let device = try await target.open(target.fresh())
        let user = device.identity.user
        let id = try await target.api.push("to be recalled", to: user, key: "cf-\(user)")
        try await device.expect(exactly: [id])
        device.acknowledge(upto: id)
        try await target.api.recall(key: "cf-\(user)", of: user)
        let entry = try await device.connection.find("a tombstone of \(id)") { _ in
            try device.ledger().entries.first { $0.recalls == id }
        }
        try Mismatch.unless(
            entry.payload.isEmpty && entry.oplogID > id, "no payload, and a higher id", seen: "\(entry)")
    }

    private static func recalledWhileAway(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let id = try await target.api.push("to be recalled", to: identity.user, key: "cf-\(identity.user)")
        try await target.api.recall(key: "cf-\(identity.user)", of: identity.user)
        let after = try await target.api.push(["stays"], to: identity.user)
        let ledger = try await target.open(identity).expect(upto: after[0])
        try Mismatch.unless(ledger.ids == after, "neither \(id) nor its tombstone", seen: "\(ledger.ids)")
    }
}
