import DeviceProtocol
import SwiftProtobuf

/// Binds that the gateway refuses, and changes of the user.
enum ClientBindCases {
    private static let rule = "Bind"

    static let all: [ClientCase] = [
        ClientCase("bind/refused", rule, refusedBind),
        ClientCase("bind/late-frames", rule, lateFrames),
        ClientCase("bind/another-user", rule, anotherUser),
    ]

    private static func refusedBind(_ setup: ClientCaseSetup) async throws {
        try setup.start()
        let session = try await setup.next()
        session.connection.send(ClientSession.connected(), ClientSession.bindResult(accepted: false))
        session.push(0, 4, [4]) {
            $0.kind = .device
            $0.bindNumber = 0
        }
        try await session.expectAcknowledged(4)
        try await setup.expectShown([4])
    }

    private static func lateFrames(_ setup: ClientCaseSetup) async throws {
        let session = try await setup.open()
        for number: UInt32 in [0, 2, 4_000_000_000] { session.push(0, 3, [1, 2, 3]) { $0.bindNumber = number } }
        try await session.expectAlive()
        try await setup.expectStillShown([])
        try Mismatch.unless(
            session.acknowledged.isEmpty, "no acknowledgement of another bind's frames", seen: "\(session.acknowledged)"
        )
        try await setup.expectService(of: session)
    }

    private static func anotherUser(_ setup: ClientCaseSetup) async throws {
        let first = try await setup.open()
        first.push(0, 3, [1, 2, 3])
        try await first.expectAcknowledged(3)
        try await setup.expectShown([1, 2, 3])
        await setup.program.stop()
        try setup.start(user: "somebody-else")
        let other = try await setup.accept()
        try Mismatch.unless(
            other.connect.bind.userID == "somebody-else" && other.position == 0, "another user without positions",
            seen: "\(other.connect.bind)")
        other.push(0, 2, [2])
        try await other.expectAcknowledged(2)
        try await setup.expectShown([1, 2, 3, 2])
        await setup.program.stop()
        try setup.start()
        let back = try await setup.accept()
        try Mismatch.unless(back.position == 3, "position 3 of the first user", seen: "\(back.position)")
    }
}
