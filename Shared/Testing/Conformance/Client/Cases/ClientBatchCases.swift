import DeviceProtocol
import Foundation
import SwiftProtobuf

/// Batches: order, repeats, gaps, ids and payloads.
enum ClientBatchCases {
    private static let rule = "Channels, positions, batches"

    static let all: [ClientCase] = [
        ClientCase("batch/in-order", rule) { setup in
            let session = try await setup.open()
            session.push(0, 10, [3, 7, 10])
            session.push(10, 40, [11, 40])
            try await session.expectAcknowledged(40)
            try await setup.expectShown([3, 7, 10, 11, 40])
        },
        ClientCase("batch/repeated", rule) { setup in
            let session = try await setup.open()
            for _ in 0..<3 { session.push(0, 3, [1, 2, 3]) }
            _ = try await session.connection.find("StoredAck 3 for the repeats too") { _ in
                session.acknowledged.last == 3 ? true : nil
            }
            session.push(0, 2, [1, 2])
            session.push(3, 4, [4])
            try await session.expectAcknowledged(4)
            try await setup.expectStillShown([1, 2, 3, 4])
        },
        ClientCase("batch/known-is-acknowledged-at-the-position", rule) { setup in
            let session = try await setup.open()
            session.push(0, 5, [1, 5])
            try await session.expectAcknowledged(5)
            await setup.program.stop()
            try setup.start()
            let again = try await setup.accept()
            again.push(0, 2, [1])
            _ = try await again.connection.find("StoredAck 5") { _ in again.acknowledged == [5] ? true : nil }
            try await setup.expectStillShown([1, 5])
        },
        ClientCase("batch/overlapping", rule) { setup in
            let session = try await setup.open()
            session.push(0, 3, [1, 2, 3])
            session.push(1, 5, [2, 3, 4, 5])
            try await session.expectAcknowledged(5)
            try await setup.expectStillShown([1, 2, 3, 4, 5])
        },
        ClientCase("batch/gap", rule, gap),
        ClientCase("batch/reordered", rule) { setup in
            let session = try await setup.open()
            session.connection.sendBytes(
                FrameBytes.of([
                    ClientSession.frame(ClientSession.batch(2, 4, [3, 4])),
                    ClientSession.frame(ClientSession.batch(0, 2, [1, 2])),
                ]))
            let again = try await setup.expectReturn(after: session)
            try Mismatch.unless(
                session.acknowledged.allSatisfy { $0 <= 0 } && again.position == 0, "no data accepted after the gap",
                seen: session.connection.summary)
            again.accept()
            again.push(0, 4, [1, 2, 3, 4])
            try await again.expectAcknowledged(4)
            try await setup.expectStillShown([1, 2, 3, 4])
        },
        ClientCase("batch/without-entries", rule) { setup in
            let session = try await setup.open()
            session.push(0, 9, [])
            try await session.expectAcknowledged(9)
            session.push(9, 10, [10])
            try await session.expectAcknowledged(10)
            try await setup.expectShown([10])
        },
        ClientCase("batch/position-survives-the-connection", rule) { setup in
            let session = try await setup.open()
            session.push(0, 8, [2, 5])
            try await session.expectAcknowledged(8)
            session.connection.cut()
            let again = try await setup.accept()
            try Mismatch.unless(again.position == 8, "position 8", seen: "\(again.position)")
        },
        ClientCase("batch/several-channels-in-a-frame", rule, severalChannels),
        ClientCase("batch/largest-ids", "Packets and their fields") { setup in
            let session = try await setup.open()
            let largest: Int64 = (1 << 53) - 1
            session.push(0, largest, [largest - 1, largest])
            try await session.expectAcknowledged(largest)
            try await setup.expectShown([largest - 1, largest])
        },
        ClientCase("batch/passed-over", rule) { setup in
            let session = try await setup.open()
            session.push(0, 100, [99, 100]) { $0.passedOverUpto = 98 }
            try await session.expectAcknowledged(100)
            session.push(100, 101, [101])
            try await session.expectAcknowledged(101)
            try await setup.expectStillShown([99, 100, 101])
        },
        ClientCase("batch/payloads", "Framing", payloads),
    ]

    private static func gap(_ setup: ClientCaseSetup) async throws {
        let session = try await setup.open()
        session.push(0, 3, [1, 2, 3])
        try await session.expectAcknowledged(3)
        session.push(10, 12, [11, 12])
        let again = try await setup.expectReturn(after: session)
        try Mismatch.unless(
            session.acknowledged.last == 3 && again.position == 3, "position 3 in the bind",
            seen: "position \(again.position); \(session.connection.summary)")
        again.accept()
        again.push(3, 12, [11, 12])
        try await again.expectAcknowledged(12)
        try await setup.expectStillShown([1, 2, 3, 11, 12])
    }

    private static func severalChannels(_ setup: ClientCaseSetup) async throws {
        let session = try await setup.open()
        let kinds: [Mss_Device_V1_ChannelKind] = [.user, .device, .globalUser, .globalDevice]
        let needsUser = [true, false, true, false]
        var frame = Mss_Device_V1_Packet()
        frame.push.batches = zip(kinds, needsUser).enumerated().map { index, kind in
            ClientSession.batch(0, Int64(index + 1), [Int64(index + 1)]) {
                $0.kind = kind.0
                $0.bizType = "TYPE-\(index)"
                $0.bindNumber = kind.1 ? 1 : 0
            }
        }
        session.connection.send(frame)
        let items = try await session.connection.find("StoredAck of four channels") { packets in
            let items = packets.flatMap(\.storedAck.channels)
            return Set(items.map(\.bizType)).count == 4 ? items : nil
        }
        for (index, kind) in zip(kinds, needsUser).enumerated() {
            let item = items.last { $0.bizType == "TYPE-\(index)" }
            try Mismatch.unless(
                item?.kind == kind.0 && item?.upto == Int64(index + 1) && item?.bindNumber == (kind.1 ? 1 : 0),
                "kind, position and bind of TYPE-\(index)", seen: item.map { "\($0)" } ?? "none")
        }
        session.connection.cut()
        let again = try await setup.next()
        func points(_ points: [Mss_Device_V1_SyncPoint]) -> Set<String> {
            Set(points.map { "\($0.bizType)=\($0.oplogID)" })
        }
        try Mismatch.unless(
            points(again.connect.bind.syncPoints) == ["TYPE-0=1", "TYPE-2=3"]
                && points(again.connect.syncPoints) == ["TYPE-1=2", "TYPE-3=4"],
            "user kinds in the bind, device kinds in Connect", seen: "\(again.connect)")
    }

    private static func payloads(_ setup: ClientCaseSetup) async throws {
        let session = try await setup.open()
        let texts = [
            String(repeating: "\u{20AC}", count: 4_096), "\u{1F600} \"quoted\" \\ \u{1}\t\r\n line 2", "", "{}",
        ]
        let bytes = (0..<3_072).map { UInt8(truncatingIfNeeded: $0) }
        session.push(0, 5, [1, 2, 3, 4, 5]) {
            for index in texts.indices { $0.entries[index].payload = .init(texts[index].utf8) }
            $0.entries[4].payload = .init(bytes)
            $0.entries[4].binary = true
        }
        try await session.expectAcknowledged(5)
        try await setup.expectShown([1, 2, 3, 4, 5])
        let shown = try setup.program.shown().map(\.payload)
        let expected = texts.map { Array($0.utf8) } + [bytes]
        for index in expected.indices {
            try Mismatch.unless(
                shown[index] == expected[index], "payload \(index + 1) as sent",
                seen: "\(shown[index].count) bytes instead of \(expected[index].count), or different bytes")
        }
    }
}
