import DeviceProtocol
import SwiftProtobuf

/// Close codes and back-off.
extension ClientCases {
    private static let rule = "Close codes"

    static let closing: [Case] =
        connectingAgain + connectingLater + connectingElsewhere + signingInAgain + stayingAway

    private static let connectingAgain: [Case] = [UInt32]([1000, 1001, 1999]).map { code in
        Case("close/\(code)-connects-again", rule) { stage in
            let closedAt = try await closed(stage, code)
            let again = try await stage.next(within: .seconds(5))
            try expectWait(closedAt, again, atLeast: .milliseconds(50))
            again.accept()
            try await expectService(of: again, on: stage)
        }
    }

    private static let connectingLater: [Case] = [UInt32]([2000, 2999, 3000, 0, 6000, 9000, .max]).map { code in
        Case("close/\(code)-connects-after-a-while", rule) { stage in
            let closedAt = try await closed(stage, code) { $0.retryAfterMs = 1_500 }
            let again = try await stage.next(within: .seconds(6))
            try expectWait(closedAt, again, atLeast: .milliseconds(1_500))
            try Mismatch.unless(
                again.connect.bind.userID == stage.user, "the user bound again", seen: "\(again.connect.bind)")
        }
    }

    private static let connectingElsewhere: [Case] = [
        Case("close/3000-connects-elsewhere", rule) { stage in try await elsewhere(stage, 3000) },
        Case("close/3999-connects-elsewhere", rule) { stage in try await elsewhere(stage, 3999) },
        Case("close/elsewhere-that-fails", rule) { stage in
            _ = try await closed(stage, 3000) { $0.address = "127.0.0.1:1" }
            try await expectService(of: try await stage.accept(), on: stage)
        },
    ]

    private static let signingInAgain: [Case] = [UInt32]([4000, 4999]).map { code in
        Case("close/\(code)-connects-without-a-user", rule) { stage in
            _ = try await closed(stage, code)
            let again = try await stage.next(within: .seconds(5))
            try Mismatch.unless(
                again.connect.bind.userID.isEmpty, "a Connect without a user", seen: "\(again.connect.bind)")
        }
    }

    private static let stayingAway: [Case] =
        [UInt32]([5000, 5001, 5002, 5999]).map { code in
            Case("close/\(code)-stays-away", rule) { stage in
                _ = try await closed(stage, code)
                try await expectAway(stage)
            }
        } + [
            Case("close/while-greeting", rule) { stage in
                try stage.start()
                try await stage.next().close(5001)
                try await expectAway(stage)
            }
        ]

    private static func expectAway(_ stage: ClientStage) async throws {
        try await Task.sleep(for: .seconds(4))
        let more = stage.gateway.connections.count - 1
        try Mismatch.unless(more == 0, "no other connection", seen: "\(more) more")
    }

    /// The gateway closes the program's first connection; when.
    private static func closed(
        _ stage: ClientStage, _ code: UInt32, _ more: (inout Mss_Device_V1_Close) -> Void = { _ in }
    ) async throws -> ContinuousClock.Instant {
        let session = try await stage.open()
        try await session.expectAlive()
        let now = ContinuousClock.now
        session.close(code, more)
        return now
    }

    private static func expectWait(
        _ closedAt: ContinuousClock.Instant, _ again: ClientSession, atLeast limit: Duration
    ) throws(Mismatch) {
        let wait = closedAt.duration(to: again.connection.startedAt)
        try Mismatch.unless(wait >= limit, "no connection before \(limit)", seen: "one after \(wait)")
    }

    private static func elsewhere(_ stage: ClientStage, _ code: UInt32) async throws {
        let other = try await ScriptedGateway.start(stage.bench.authority)
        do {
            _ = try await closed(stage, code) { $0.address = "127.0.0.1:\(other.port)" }
            let session = try await stage.next(of: other, within: .seconds(5))
            session.accept()
            try await expectService(of: session, on: stage)
        } catch {
            await other.stop()
            throw error
        }
        await stage.program.stop()
        await other.stop()
    }

    // MARK: Cases that wait

    static let slow: [Case] = [
        Case("confirm/again-after-30-s", "Timers") { stage in
            let session = try await stage.open()
            session.connection.respond { packet in
                guard case .ping(let ping)? = packet.body else { return nil }
                return .with { $0.pong.number = ping.number }
            }
            session.push(0, 1, [1])
            try await session.expectConfirmed([1])
            let reports = try await session.connection.find("another ConfirmReport of 1", within: .seconds(35)) { _ in
                let reports = session.reports.filter { $0.channels.contains { $0.oplogIds.contains(1) } }
                return reports.count > 1 ? reports : nil
            }
            try Mismatch.unless(
                reports[0].reportID != reports[1].reportID, "a new report_id", seen: "\(reports[0].reportID) again")
            try await stage.expectStillShown([1])
        },
        Case("backoff/grows", "Close codes", backOffGrows),
        Case("timers/silence-after-connect", "Timers") { stage in
            try stage.start()
            let session = try await stage.next()
            try await expectEnd(of: session, after: session.connection.frames[0].at)
            _ = try await stage.next()
        },
        Case("timers/silence-after-ping", "Heartbeat") { stage in
            let session = try await stage.open { $0.heartbeatSeconds = 1 }
            session.connection.respond(nil)
            let ping = try await firstPing(session)
            try await expectEnd(of: session, after: ping)
            try await expectService(of: try await stage.accept(), on: stage)
        },
        Case("timers/any-frame-is-a-sign-of-life", "Heartbeat") { stage in
            let session = try await stage.open { $0.heartbeatSeconds = 1 }
            session.connection.respond(nil)
            for _ in 0..<7 {
                try await session.connection.linger(.seconds(2))
                session.connection.send(.with { $0.caughtUp.bindNumber = 1 })
            }
            try await session.expectAlive()
        },
        Case("timers/heartbeat", "Heartbeat", heartbeat),
        Case("ladder/steps", "The resend ladder", ladderSteps),
    ]

    private static func expectEnd(of session: ClientSession, after start: ContinuousClock.Instant) async throws {
        try await session.connection.expectEnd("the device gives up after 10 s", within: .seconds(15))
        let silence = start.duration(to: session.connection.endedAt ?? .now)
        try Mismatch.unless(silence >= .milliseconds(9_500), "10 s of patience", seen: "\(silence)")
    }

    private static func pings(_ session: ClientSession) -> [FrameConnection.Frame] {
        session.connection.frames.filter { if case .ping = $0.packet.body { true } else { false } }
    }

    private static func firstPing(_ session: ClientSession) async throws -> ContinuousClock.Instant {
        try await session.connection.find("a Ping", within: .seconds(4)) { _ in pings(session).first?.at }
    }

    private static func heartbeat(_ stage: ClientStage) async throws {
        let session = try await stage.open { $0.heartbeatSeconds = 1 }
        _ = try await session.connection.find("four Pings", within: .seconds(9)) { _ in
            pings(session).count >= 4 ? true : nil
        }
        let times = pings(session).map(\.at)
        let longest = zip(times, times.dropFirst()).map { $0.duration(to: $1) }.max() ?? .zero
        try Mismatch.unless(longest < .milliseconds(2_500), "a Ping every second", seen: "\(longest) without one")
    }

    /// Twenty seconds of a gateway that closes at once: a wait that does not grow makes some forty attempts.
    private static func backOffGrows(_ stage: ClientStage) async throws {
        try stage.start()
        let end = ContinuousClock.now + .seconds(20)
        var lastEnd: ContinuousClock.Instant?
        var attempts = 0
        while .now < end {
            guard let session = try? await stage.next(within: ContinuousClock.now.duration(to: end)) else { break }
            attempts += 1
            if let lastEnd {
                let wait = lastEnd.duration(to: session.connection.startedAt)
                try Mismatch.unless(wait >= .milliseconds(50), "no wait below 50 ms", seen: "\(wait)")
            }
            lastEnd = .now
            session.close(1001)
        }
        try Mismatch.unless((2...15).contains(attempts), "2 to 15 attempts in 20 s", seen: "\(attempts)")
    }

    private static func ladderSteps(_ stage: ClientStage) async throws {
        let first = Duration.milliseconds(100)
        let session = try await stage.open(confirms: false) { $0.firstResendMs = 100 }
        session.push(0, 1, [1])
        let dead = try await session.connection.find("a report that oplog 1 is dead", within: .seconds(16)) { _ in
            session.reports.flatMap(\.resent).first { $0.oplogID == 1 && $0.dead }
        }
        let lines = try stage.program.runs().flatMap { $0 }
        try Mismatch.unless(
            lines.count == 7 && lines.allSatisfy { $0.oplog.id == 1 } && dead.attempts == 7,
            "seven hand-outs, then dead", seen: "\(lines.count) hand-outs, dead after \(dead.attempts)")
        let reported = Set(session.reports.flatMap(\.resent).map(\.attempts))
        try Mismatch.unless(reported.isSuperset(of: [7]), "repeats reported", seen: "\(reported.sorted())")
        let times = session.connection.frames.filter { frame in
            frame.packet.confirmReport.resent.contains { $0.oplogID == 1 && $0.attempts == 7 }
        }.map(\.at)
        // From the seventh hand-out, told at once, to the end: the last wait once more.
        let last = times.first.flatMap { start in times.last.map { start.duration(to: $0) } } ?? .zero
        try Mismatch.unless(last > first * 32 * 0.8, "32 w between the last hand-out and dead", seen: "\(last)")
        try await stage.expectStillShown(Array(repeating: 1, count: 7))
    }
}
