import DeviceProtocol
import SwiftProtobuf

/// Reactions to close codes.
enum ClientCloseCases {
    private static let rule = "Close codes"

    static let all: [ClientCase] =
        connectingAgain + connectingLater + connectingElsewhere + signingInAgain + stayingAway

    private static let connectingAgain: [ClientCase] = [UInt32]([1000, 1001, 1999]).map { code in
        ClientCase("close/\(code)-connects-again", rule) { stage in
            let closedAt = try await closed(stage, code)
            let again = try await stage.next(within: .seconds(5))
            try expectWait(closedAt, again, atLeast: .milliseconds(50))
            again.accept()
            try await stage.expectService(of: again)
        }
    }

    private static let connectingLater: [ClientCase] = [UInt32]([2000, 2999, 3000, 0, 6000, 9000, .max]).map { code in
        ClientCase("close/\(code)-connects-after-a-while", rule) { stage in
            let closedAt = try await closed(stage, code) { $0.retryAfterMs = 1_500 }
            let again = try await stage.next(within: .seconds(6))
            try expectWait(closedAt, again, atLeast: .milliseconds(1_500))
            try Mismatch.unless(
                again.connect.bind.userID == stage.user, "the user bound again", seen: "\(again.connect.bind)")
        }
    }

    private static let connectingElsewhere: [ClientCase] = [
        ClientCase("close/3000-connects-elsewhere", rule) { stage in try await elsewhere(stage, 3000) },
        ClientCase("close/3999-connects-elsewhere", rule) { stage in try await elsewhere(stage, 3999) },
        ClientCase("close/elsewhere-that-fails", rule) { stage in
            _ = try await closed(stage, 3000) { $0.address = "127.0.0.1:1" }
            try await stage.expectService(of: try await stage.accept())
        },
    ]

    private static let signingInAgain: [ClientCase] = [UInt32]([4000, 4999]).map { code in
        ClientCase("close/\(code)-connects-without-a-user", rule) { stage in
            _ = try await closed(stage, code)
            let again = try await stage.next(within: .seconds(5))
            try Mismatch.unless(
                again.connect.bind.userID.isEmpty, "a Connect without a user", seen: "\(again.connect.bind)")
        }
    }

    private static let stayingAway: [ClientCase] =
        [UInt32]([5000, 5001, 5002, 5999]).map { code in
            ClientCase("close/\(code)-stays-away", rule) { stage in
                _ = try await closed(stage, code)
                try await expectAway(stage)
            }
        } + [
            ClientCase("close/while-greeting", rule) { stage in
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

    /// Sends `Close` on the program's first connection, and returns the time.
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
            try await stage.expectService(of: session)
        } catch {
            await other.stop()
            throw error
        }
        await stage.program.stop()
        await other.stop()
    }
}
