import DeviceProtocol
import SwiftProtobuf

/// Resends of oplogs that the app does not confirm.
enum ClientLadderCases {
    private static let rule = "The resend ladder"

    /// All steps of the ladder. The case takes about 10 s, so `ClientTimerCases` lists it.
    static let steps = ClientCase("ladder/steps", rule, ladderSteps)

    static let all: [ClientCase] = [
        ClientCase("ladder/confirmed-takes-no-step", rule) { setup in
            let session = try await setup.open { $0.firstResendMs = 300 }
            session.push(0, 2, [1, 2])
            try await session.expectConfirmed([1, 2])
            try await setup.expectStillShown([1, 2], after: .milliseconds(1_500))
        },
        ClientCase("ladder/unconfirmed-after-a-restart", rule) { setup in
            let session = try await setup.open(confirms: false)
            session.push(0, 2, [1, 2])
            try await session.expectAcknowledged(2)
            try await setup.expectShown([1, 2])
            await setup.program.killed()
            try setup.start()
            let again = try await setup.accept()
            try await again.expectConfirmed([1, 2])
            try await setup.expectStillShown([1, 2, 1, 2])
        },
    ]

    private static func ladderSteps(_ setup: ClientCaseSetup) async throws {
        let first = Duration.milliseconds(100)
        let session = try await setup.open(confirms: false) { $0.firstResendMs = 100 }
        session.push(0, 1, [1])
        let dead = try await session.connection.find("a report that oplog 1 is dead", within: .seconds(16)) { _ in
            session.reports.flatMap(\.resent).first { $0.oplogID == 1 && $0.dead }
        }
        let lines = try setup.program.runs().flatMap { $0 }
        try Mismatch.unless(
            lines.count == 7 && lines.allSatisfy { $0.oplog.id == 1 } && dead.attempts == 7,
            "seven hand-outs, then dead", seen: "\(lines.count) hand-outs, dead after \(dead.attempts)")
        let reported = Set(session.reports.flatMap(\.resent).map(\.attempts))
        try Mismatch.unless(reported.isSuperset(of: [7]), "reports of the resends", seen: "\(reported.sorted())")
        let times = session.connection.frames.filter { frame in
            frame.packet.confirmReport.resent.contains { $0.oplogID == 1 && $0.attempts == 7 }
        }.map(\.at)
        // The seventh hand-out is reported at once. The device reports the dead letter after one more wait of the last
        // length.
        let last = times.first.flatMap { start in times.last.map { start.duration(to: $0) } } ?? .zero
        try Mismatch.unless(last > first * 32 * 0.8, "32 w between the last hand-out and dead", seen: "\(last)")
        try await setup.expectStillShown(Array(repeating: 1, count: 7))
    }
}
