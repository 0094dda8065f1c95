import DeviceProtocol
import SwiftProtobuf

/// Cases that wait for the timers of a client.
enum ClientTimerCases {
    static let all: [ClientCase] = [
        ClientCase("confirm/again-after-30-s", "Timers") { setup in
            let session = try await setup.open()
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
            try await setup.expectStillShown([1])
        },
        ClientCase("backoff/grows", "Close codes", backOffGrows),
        ClientCase("timers/silence-after-connect", "Timers") { setup in
            try setup.start()
            let session = try await setup.next()
            try await expectEnd(of: session, after: session.connection.frames[0].at)
            _ = try await setup.next()
        },
        ClientCase("timers/silence-after-ping", "Heartbeat") { setup in
            let session = try await setup.open { $0.heartbeatSeconds = 1 }
            session.connection.respond(nil)
            let ping = try await firstPing(session)
            try await expectEnd(of: session, after: ping)
            try await setup.expectService(of: try await setup.accept())
        },
        ClientCase("timers/any-frame-is-a-sign-of-life", "Heartbeat") { setup in
            let session = try await setup.open { $0.heartbeatSeconds = 1 }
            session.connection.respond(nil)
            for _ in 0..<7 {
                try await session.connection.linger(.seconds(2))
                session.connection.send(.with { $0.caughtUp.bindNumber = 1 })
            }
            try await session.expectAlive()
        },
        ClientCase("timers/heartbeat", "Heartbeat", heartbeat),
        ClientLadderCases.steps,
    ]

    private static func expectEnd(of session: ClientSession, after start: ContinuousClock.Instant) async throws {
        try await session.connection.expectEnd("the device gives up after 10 s", within: .seconds(15))
        let silence = start.duration(to: session.connection.endedAt ?? .now)
        try Mismatch.unless(silence >= .milliseconds(9_500), "at least 10 s of silence", seen: "\(silence)")
    }

    private static func pings(_ session: ClientSession) -> [FrameConnection.Frame] {
        session.connection.frames.filter { if case .ping = $0.packet.body { true } else { false } }
    }

    private static func firstPing(_ session: ClientSession) async throws -> ContinuousClock.Instant {
        try await session.connection.find("a Ping", within: .seconds(4)) { _ in pings(session).first?.at }
    }

    private static func heartbeat(_ setup: ClientCaseSetup) async throws {
        let session = try await setup.open { $0.heartbeatSeconds = 1 }
        _ = try await session.connection.find("four Pings", within: .seconds(9)) { _ in
            pings(session).count >= 4 ? true : nil
        }
        let times = pings(session).map(\.at)
        let longest = zip(times, times.dropFirst()).map { $0.duration(to: $1) }.max() ?? .zero
        try Mismatch.unless(longest < .milliseconds(2_500), "a Ping every second", seen: "\(longest) without one")
    }

    /// A gateway that closes at once, for 20 s. A constant back-off would lead to about forty attempts.
    private static func backOffGrows(_ setup: ClientCaseSetup) async throws {
        try setup.start()
        let end = ContinuousClock.now + .seconds(20)
        var lastEnd: ContinuousClock.Instant?
        var attempts = 0
        while .now < end {
            guard let session = try? await setup.next(within: ContinuousClock.now.duration(to: end)) else { break }
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
}
