import DeviceProtocol
import SwiftProtobuf

/// Crashes of the program while data flows.
enum ClientCrashCases {
    private static let rule = "Acknowledgement"

    static let all: [ClientCase] = [
        ClientCase("crash/kill-on-acknowledgement", rule, killOnAcknowledgement),
        ClientCase("crash/kill-at-random", rule, killAtRandom),
    ]

    /// Kills the program at each acknowledgement. The acknowledged data must be on its disk.
    private static func killOnAcknowledgement(_ setup: ClientCaseSetup) async throws {
        var position: Int64 = 0
        for round in 0..<8 {
            try setup.start()
            let session = try await setup.accept()
            try Mismatch.unless(
                session.position == position, "the acknowledged position \(position) after the crash",
                seen: "\(session.position)")
            let program = setup.program
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
        try setup.start()
        _ = try await setup.accept()
        try await expectAllShown(upto: position, on: setup)
    }

    /// Kills the program at random times while data flows.
    private static func killAtRandom(_ setup: ClientCaseSetup) async throws {
        let last: Int64 = 1_500
        var (position, reported) = (Int64(0), [Set<Int64>]())
        for round in 0..<16 {
            try setup.start()
            let session = try await setup.accept()
            try Mismatch.unless(
                session.position >= position, "at least the acknowledged position \(position) after the crash",
                seen: "\(session.position)")
            let end = ContinuousClock.now + .milliseconds(round == 15 ? 60_000 : Int.random(in: 0...250))
            try await feed(session, upto: last, until: end)
            if round < 15 { await setup.program.killed() } else { try await expectAllShown(upto: last, on: setup) }
            position = max(position, session.acknowledged.max() ?? session.position)
            reported.append(session.confirmed)
        }
        try checkOnce(try setup.program.runs().map { $0.map(\.oplog.id) }, reported: reported)
    }

    /// Sends small batches from the device's position.
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

    /// Waits until everything is shown, for as long as something new is shown every 15 s.
    private static func expectAllShown(upto last: Int64, on setup: ClientCaseSetup) async throws {
        var (fewest, deadline) = (Int.max, ContinuousClock.now)
        while true {
            let left = Set(1...last).subtracting(try setup.program.shown().map(\.id))
            guard !left.isEmpty else { return }
            if left.count < fewest { (fewest, deadline) = (left.count, .now + .seconds(15)) }
            guard .now < deadline else {
                throw Mismatch(
                    expected: "each of 1…\(last) is handed to the app",
                    seen: "without \(left.count), among them \(left.sorted().prefix(20))")
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    /// Compares the printed oplogs of each start with its confirmations. First hand-outs must rise. In one start each
    /// oplog occurs once. After its confirmation it does not occur in a later start.
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
}
