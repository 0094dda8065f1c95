import DeviceProtocol
import Foundation
import SwiftProtobuf
import Synchronization

/// What must survive: confirmations, re-reads, tombstones, crashes.
extension ClientCases {
    static let store: [Case] = [
        Case("confirm/reported", "Acknowledgement") { stage in
            let session = try await stage.open()
            session.push(0, 3, [1, 2, 3])
            try await session.expectConfirmed([1, 2, 3])
            let channels = session.reports.flatMap(\.channels)
            try Mismatch.unless(
                channels.allSatisfy { $0.bizType == ClientStage.bizType && $0.kind == .user && $0.bindNumber == 1 },
                "the channel's names and bind 1", seen: "\(channels)")
        },
        Case("confirm/again-on-the-next-connection", "Acknowledgement") { stage in
            let session = try await stage.open()
            session.connection.respond(nil)
            session.push(0, 1, [1])
            try await session.expectConfirmed([1])
            session.connection.cut()
            let again = try await stage.accept()
            try await again.expectConfirmed([1])
            try await stage.expectStillShown([1])
        },
        Case("confirm/answer-to-another-report", "Acknowledgement") { stage in
            let session = try await stage.open()
            session.connection.respond { packet in
                guard case .confirmReport(let report)? = packet.body else { return nil }
                return .with { $0.confirmRecorded.reportID = report.reportID &+ 1_000 }
            }
            session.push(0, 1, [1])
            try await session.expectConfirmed([1])
            session.connection.cut()
            try await stage.accept().expectConfirmed([1])
        },
        Case("confirm/not-shown-after-a-restart", "Acknowledgement") { stage in
            let session = try await stage.open()
            session.push(0, 2, [1, 2])
            try await session.expectAcknowledged(2)
            try await session.expectConfirmed([1, 2])
            await stage.program.killed()
            try stage.start()
            let again = try await stage.accept()
            again.push(0, 3, [1, 2, 3])
            try await again.expectAcknowledged(3)
            try await stage.expectStillShown([1, 2, 3])
        },
        Case("reread/below-the-position", "Re-reads", rereadBelow),
        Case("reread/number-is-remembered", "Re-reads", rereadRemembered),
        Case("reread/of-what-is-confirmed", "Re-reads") { stage in
            let session = try await stage.open()
            session.connection.respond(nil)
            session.push(0, 1, [1])
            try await session.expectConfirmed([1])
            session.connection.send(ClientSession.frame(ClientSession.batch(0, 0, [1]) { $0.reread = 5 }))
            try await expectReread(5, by: session)
            try await stage.expectStillShown([1])
        },
        Case("tombstone/before-the-hand-out", "Tombstones") { stage in
            let session = try await stage.open()
            session.push(0, 6, [5, 6]) {
                $0.entries[1].recalls = 5
                $0.entries[1].payload = .init()
            }
            try await session.expectAcknowledged(6)
            try await stage.expectStillShown([])
        },
        Case("tombstone/after-the-hand-out", "Tombstones") { stage in
            let session = try await stage.open()
            session.push(0, 5, [5])
            try await session.expectConfirmed([5])
            session.push(5, 6, [6]) {
                $0.entries[0].recalls = 5
                $0.entries[0].payload = .init()
            }
            try await session.expectAcknowledged(6)
            try await stage.expectShown([5, 6])
            let last = try stage.program.shown().last
            try Mismatch.unless(last?.recalls == 5, "the app is told that 5 is recalled", seen: "no `recalls`")
        },
        Case("crash/kill-on-acknowledgement", "Acknowledgement", killOnAcknowledgement),
        Case("crash/kill-at-random", "Acknowledgement", killAtRandom),
    ]

    // MARK: Re-reads

    private static func expectReread(_ number: UInt64, by session: ClientSession, times: Int = 1) async throws {
        _ = try await session.connection.find("StoredAck of the re-read \(number), \(times) in all") { packets in
            packets.flatMap(\.storedAck.rereads).count { $0 == number } >= times ? true : nil
        }
    }

    private static func rereadBelow(_ stage: ClientStage) async throws {
        let session = try await stage.open()
        session.push(0, 10, [9, 10])
        try await session.expectAcknowledged(10)
        try await stage.expectShown([9, 10])
        // A batch with a number says nothing of positions, whatever stands there.
        session.connection.send(
            ClientSession.frame(ClientSession.batch(2, 900, [3]) { $0.reread = UInt64.max }))
        try await expectReread(UInt64.max, by: session)
        try await stage.expectShown([9, 10, 3])
        session.push(10, 11, [11])
        try await session.expectAcknowledged(11)
        session.connection.cut()
        let again = try await stage.accept()
        try Mismatch.unless(again.position == 11, "position 11", seen: "\(again.position)")
        try await stage.expectStillShown([9, 10, 3, 11])
    }

    private static func rereadRemembered(_ stage: ClientStage) async throws {
        let frame = ClientSession.frame(ClientSession.batch(0, 0, [3]) { $0.reread = 77 })
        let session = try await stage.open()
        session.push(0, 10, [10])
        try await stage.expectShown([10])
        session.connection.send(frame)
        try await expectReread(77, by: session)
        try await stage.expectShown([10, 3])
        try await session.expectConfirmed([10, 3])
        session.connection.send(frame)
        try await expectReread(77, by: session, times: 2)
        await stage.program.killed()
        try stage.start()
        let again = try await stage.accept()
        again.connection.send(frame)
        try await expectReread(77, by: again)
        try await stage.expectStillShown([10, 3])
    }

    // MARK: Crashes

    /// Dies at the instant of an acknowledgement: what it said is on disk must be there.
    private static func killOnAcknowledgement(_ stage: ClientStage) async throws {
        var position: Int64 = 0
        for round in 0..<8 {
            try stage.start()
            let session = try await stage.accept()
            try Mismatch.unless(
                session.position == position, "the acknowledged position \(position) after the crash",
                seen: "\(session.position)")
            let program = stage.program
            session.connection.respond { packet in
                if case .storedAck = packet.body { program.kill() }
                return nil
            }
            let next = position + Int64(round % 3) + 1
            session.push(position, next, Array(position + 1...next))
            try await session.expectAcknowledged(next)
            await program.killed()
            position = next
        }
        try stage.start()
        _ = try await stage.accept()
        try await expectAllShown(upto: position, on: stage)
    }

    /// Dies at any moment, again and again, while data flows.
    private static func killAtRandom(_ stage: ClientStage) async throws {
        let last: Int64 = 1_500
        var (position, reported) = (Int64(0), [Set<Int64>]())
        for round in 0..<16 {
            try stage.start()
            let session = try await stage.accept()
            try Mismatch.unless(
                session.position >= position, "at least the acknowledged position \(position) after the crash",
                seen: "\(session.position)")
            let end = ContinuousClock.now + .milliseconds(round == 15 ? 30_000 : Int.random(in: 0...250))
            try await feed(session, upto: last, until: end)
            if round < 15 { await stage.program.killed() } else { try await expectAllShown(upto: last, on: stage) }
            position = max(position, session.acknowledged.max() ?? session.position)
            reported.append(session.confirmed)
        }
        try checkOnce(try stage.program.runs().map { $0.map(\.oplog.id) }, reported: reported)
    }

    /// Sends small batches from the device's position on.
    private static func feed(
        _ session: ClientSession, upto last: Int64, until end: ContinuousClock.Instant
    ) async throws {
        var sent = session.position
        while sent < last, .now < end, !session.connection.isEnded {
            let next = min(last, sent + Int64.random(in: 1...4))
            session.push(sent, next, Array(sent + 1...next))
            sent = next
            try await Task.sleep(for: .milliseconds(Int.random(in: 1...6)))
        }
        while sent == last, .now < end, session.acknowledged.last != last, !session.connection.isEnded {
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    private static func expectAllShown(upto last: Int64, on stage: ClientStage) async throws {
        let deadline = ContinuousClock.now + .seconds(15)
        while Set(try stage.program.shown().map(\.id)) != Set(1...last) {
            guard .now < deadline else {
                let missing = Set(1...last).subtracting(try stage.program.shown().map(\.id)).sorted()
                throw Mismatch(
                    expected: "each of 1…\(last) is handed to the app", seen: "without \(missing.prefix(20))")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// What was shown, start by start, against what was reported as confirmed in each: first hand-outs rise, nothing is
    /// handed out twice in one start, and nothing in a later one than it was confirmed in.
    static func checkOnce(_ runs: [[Int64]], reported: [Set<Int64>]) throws(Mismatch) {
        var (known, confirmed, newest) = (Set<Int64>(), Set<Int64>(), Int64(0))
        for (index, run) in runs.enumerated() {
            try Mismatch.unless(Set(run).count == run.count, "each once in start \(index + 1)", seen: "\(run)")
            try Mismatch.unless(
                confirmed.isDisjoint(with: run), "nothing again in start \(index + 1) that was confirmed before",
                seen: "\(confirmed.intersection(run).sorted())")
            for id in run where known.insert(id).inserted {
                try Mismatch.unless(id > newest, "first hand-outs in rising order", seen: "\(id) after \(newest)")
                newest = id
            }
            if reported.indices.contains(index) { confirmed.formUnion(reported[index]) }
        }
    }

    // MARK: Ladder

    static let ladder: [Case] = [
        Case("ladder/confirmed-takes-no-step", "The resend ladder") { stage in
            let session = try await stage.open { $0.firstResendMs = 300 }
            session.push(0, 2, [1, 2])
            try await session.expectConfirmed([1, 2])
            try await stage.expectStillShown([1, 2], after: .milliseconds(1_500))
        },
        Case("ladder/unconfirmed-after-a-restart", "The resend ladder") { stage in
            let session = try await stage.open(confirms: false)
            session.push(0, 2, [1, 2])
            try await session.expectAcknowledged(2)
            try await stage.expectShown([1, 2])
            await stage.program.killed()
            try stage.start()
            let again = try await stage.accept()
            try await again.expectConfirmed([1, 2])
            try await stage.expectStillShown([1, 2, 1, 2])
        },
    ]
}
