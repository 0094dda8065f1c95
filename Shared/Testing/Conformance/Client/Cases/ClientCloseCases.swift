import DeviceProtocol
import SwiftProtobuf

/// Reactions to close codes.
enum ClientCloseCases {
    private static let rule = "Close codes"

    static let all: [ClientCase] =
        connectingAgain + connectingLater + connectingElsewhere + signingInAgain + stayingAway

    private static let connectingAgain: [ClientCase] = [UInt32]([1000, 1001, 1999]).map { code in
        ClientCase("close/\(code)-connects-again", rule) { setup in
            let closedAt = try await closed(setup, code)
            let again = try await setup.next(within: .seconds(5))
            try expectWait(closedAt, again, atLeast: .milliseconds(50))
            again.accept()
            try await setup.expectService(of: again)
        }
    }

    private static let connectingLater: [ClientCase] = [UInt32]([2000, 2999, 3000, 0, 6000, 9000, .max]).map { code in
        ClientCase("close/\(code)-connects-after-a-while", rule) { setup in
            let closedAt = try await closed(setup, code) { $0.retryAfterMs = 1_500 }
            let again = try await setup.next(within: .seconds(6))
            try expectWait(closedAt, again, atLeast: .milliseconds(1_500))
            try Mismatch.unless(
                again.connect.bind.userID == setup.user, "the user bound again", seen: "\(again.connect.bind)")
        }
    }

    private static let connectingElsewhere: [ClientCase] = [
        ClientCase("close/3000-connects-elsewhere", rule) { setup in try await elsewhere(setup, 3000) },
        ClientCase("close/3999-connects-elsewhere", rule) { setup in try await elsewhere(setup, 3999) },
        ClientCase("close/elsewhere-that-fails", rule) { setup in
            _ = try await closed(setup, 3000) { $0.address = "127.0.0.1:1" }
            try await setup.expectService(of: try await setup.accept())
        },
    ]

    private static let signingInAgain: [ClientCase] = [UInt32]([4000, 4999]).map { code in
        ClientCase("close/\(code)-connects-without-a-user", rule) { setup in
            _ = try await closed(setup, code)
            let again = try await setup.next(within: .seconds(5))
            try Mismatch.unless(
                again.connect.bind.userID.isEmpty, "a Connect without a user", seen: "\(again.connect.bind)")
        }
    }

    private static let stayingAway: [ClientCase] =
        [UInt32]([5000, 5001, 5002, 5999]).map { code in
            ClientCase("close/\(code)-stays-away", rule) { setup in
                _ = try await closed(setup, code)
                try await expectAway(setup)
            }
        } + [
            ClientCase("close/while-greeting", rule) { setup in
                try setup.start()
                try await setup.next().close(5001)
                try await expectAway(setup)
            }
        ]

    private static func expectAway(_ setup: ClientCaseSetup) async throws {
        // Time in which a client that ignores the code would connect again.
        try await Task.sleep(for: .seconds(4))
        let more = setup.gateway.connections.count - 1
        try Mismatch.unless(more == 0, "no other connection", seen: "\(more) more")
    }

    /// Sends `Close` on the program's first connection, and returns the time.
    private static func closed(
        _ setup: ClientCaseSetup, _ code: UInt32, _ more: (inout Mss_Device_V1_Close) -> Void = { _ in }
    ) async throws -> ContinuousClock.Instant {
        let session = try await setup.open()
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

    private static func elsewhere(_ setup: ClientCaseSetup, _ code: UInt32) async throws {
        let other = try await ScriptedGateway.start(setup.bench.authority)
        do {
            _ = try await closed(setup, code) { $0.address = "127.0.0.1:\(other.port)" }
            let session = try await setup.next(of: other, within: .seconds(5))
            session.accept()
            try await setup.expectService(of: session)
        } catch {
            await other.stop()
            throw error
        }
        await setup.program.stop()
        await other.stop()
    }
}
