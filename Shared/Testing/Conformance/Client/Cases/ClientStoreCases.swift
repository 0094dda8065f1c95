import DeviceProtocol
import Foundation
import SwiftProtobuf

/// State in the local store: confirmations, re-reads and tombstones.
enum ClientStoreCases {
    static let all: [ClientCase] = [
        ClientCase("confirm/reported", "Acknowledgement") { setup in
            let session = try await setup.open()
            session.push(0, 3, [1, 2, 3])
            try await session.expectConfirmed([1, 2, 3])
            let channels = session.reports.flatMap(\.channels)
            try Mismatch.unless(
                channels.allSatisfy { $0.bizType == ClientCaseSetup.bizType && $0.kind == .user && $0.bindNumber == 1 },
                "the names of the channel and bind 1", seen: "\(channels)")
        },
        ClientCase("confirm/again-on-the-next-connection", "Acknowledgement") { setup in
            let session = try await setup.open()
            session.connection.respond(nil)
            session.push(0, 1, [1])
            try await session.expectConfirmed([1])
            session.connection.cut()
            let again = try await setup.accept()
            try await again.expectConfirmed([1])
            try await setup.expectStillShown([1])
        },
        ClientCase("confirm/answer-to-another-report", "Acknowledgement") { setup in
            let session = try await setup.open()
            session.connection.respond { packet in
                guard case .confirmReport(let report)? = packet.body else { return nil }
                return .with { $0.confirmRecorded.reportID = report.reportID &+ 1_000 }
            }
            session.push(0, 1, [1])
            try await session.expectConfirmed([1])
            session.connection.cut()
            try await setup.accept().expectConfirmed([1])
        },
        ClientCase("confirm/not-shown-after-a-restart", "Acknowledgement") { setup in
            let session = try await setup.open()
            session.push(0, 2, [1, 2])
            try await session.expectAcknowledged(2)
            try await session.expectConfirmed([1, 2])
            await setup.program.killed()
            try setup.start()
            let again = try await setup.accept()
            again.push(0, 3, [1, 2, 3])
            try await again.expectAcknowledged(3)
            try await setup.expectStillShown([1, 2, 3])
        },
        ClientCase("reread/below-the-position", "Re-reads", rereadBelow),
        ClientCase("reread/number-is-remembered", "Re-reads", rereadRemembered),
        ClientCase("reread/of-what-is-confirmed", "Re-reads") { setup in
            let session = try await setup.open()
            session.connection.respond(nil)
            session.push(0, 1, [1])
            try await session.expectConfirmed([1])
            session.connection.send(ClientSession.frame(ClientSession.batch(0, 0, [1]) { $0.reread = 5 }))
            try await expectReread(5, by: session)
            try await setup.expectStillShown([1])
        },
        ClientCase("tombstone/before-the-hand-out", "Tombstones") { setup in
            let session = try await setup.open()
            session.push(0, 6, [5, 6]) {
                $0.entries[1].recalls = 5
                $0.entries[1].payload = .init()
            }
            try await session.expectAcknowledged(6)
            try await setup.expectStillShown([])
        },
        ClientCase("tombstone/after-the-hand-out", "Tombstones") { setup in
            let session = try await setup.open()
            session.push(0, 5, [5])
            try await session.expectConfirmed([5])
            session.push(5, 6, [6]) {
                $0.entries[0].recalls = 5
                $0.entries[0].payload = .init()
            }
            try await session.expectAcknowledged(6)
            try await setup.expectShown([5, 6])
            let last = try setup.program.shown().last
            try Mismatch.unless(last?.recalls == 5, "a tombstone of 5 for the app", seen: "no `recalls`")
        },
    ]

    private static func expectReread(_ number: UInt64, by session: ClientSession, times: Int = 1) async throws {
        _ = try await session.connection.find("StoredAck of the re-read \(number), \(times) times") { packets in
            packets.flatMap(\.storedAck.rereads).count { $0 == number } >= times ? true : nil
        }
    }

    private static func rereadBelow(_ setup: ClientCaseSetup) async throws {
        let session = try await setup.open()
        session.push(0, 10, [9, 10])
        try await session.expectAcknowledged(10)
        try await setup.expectShown([9, 10])
        // A batch with a re-read number contains no valid positions in its fields.
        session.connection.send(
            ClientSession.frame(ClientSession.batch(2, 900, [3]) { $0.reread = UInt64.max }))
        try await expectReread(UInt64.max, by: session)
        try await setup.expectShown([9, 10, 3])
        session.push(10, 11, [11])
        try await session.expectAcknowledged(11)
        session.connection.cut()
        let again = try await setup.accept()
        try Mismatch.unless(again.position == 11, "position 11", seen: "\(again.position)")
        try await setup.expectStillShown([9, 10, 3, 11])
    }

    private static func rereadRemembered(_ setup: ClientCaseSetup) async throws {
        let frame = ClientSession.frame(ClientSession.batch(0, 0, [3]) { $0.reread = 77 })
        let session = try await setup.open()
        session.push(0, 10, [10])
        try await setup.expectShown([10])
        session.connection.send(frame)
        try await expectReread(77, by: session)
        try await setup.expectShown([10, 3])
        try await session.expectConfirmed([10, 3])
        session.connection.send(frame)
        try await expectReread(77, by: session, times: 2)
        await setup.program.killed()
        try setup.start()
        let again = try await setup.accept()
        again.connection.send(frame)
        try await expectReread(77, by: again)
        try await setup.expectStillShown([10, 3])
    }
}
