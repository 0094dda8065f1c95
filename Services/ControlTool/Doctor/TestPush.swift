import Foundation
import MobileSync
import SyncModel
import ToolSupport

/// One push to a device of the tool: through the API, over a gateway, until the confirmation.
struct TestPush: Sendable {
    /// Configuration of a new device.
    let client: SyncClientConfiguration
    let configuration: SyncConfiguration
    let user: String
    let session: String
    /// Calls the API and returns its response.
    let push: @Sendable (_ target: String, _ id: String) async throws -> Data

    private static let limit = Duration.seconds(20)

    /// Makes the push.
    func finding() async throws -> Finding {
        let device = try SyncClient(configuration: client, logger: ToolSettings.logger())
        let events = device.events
        if configuration.kind.needsUser { try device.bind(userID: user, sessionID: session) }
        return try await withThrowingTaskGroup(of: Finding?.self) { group in
            group.addTask {
                try await device.run()
                return nil
            }
            group.addTask {
                try await Task.sleep(for: Self.limit)
                return .problem(
                    "test push", "it did not arrive within \(Self.limit.components.seconds) s",
                    "see mssctl explain; a session without a valid verdict receives no checked data"
                )
            }
            let (isReady, ready) = AsyncStream.makeStream(of: Void.self)
            group.addTask { await watch(events, ready) }
            group.addTask {
                for await _ in isReady { return try await measured(device) }
                return nil
            }
            defer { group.cancelAll() }
            while let finding = try await group.next() { if let finding { return finding } }
            return .problem("test push", "the device ended", "see the lines above")
        }
    }

    /// The failure that prevents the delivery. The value is nil if the events end.
    private func watch(
        _ events: AsyncStream<SyncEvent>, _ ready: AsyncStream<Void>.Continuation
    ) async -> Finding? {
        for await event in events {
            switch event {
            case .caughtUp(let userID) where userID == (configuration.kind.needsUser ? user : nil): ready.yield()
            case .bindRefused(_, let reason), .sessionInvalid(_, let reason):
                return .problem(
                    "test push", "the gateway refuses user \(user): \(reason)", "name another --user or session")
            case .closed(let code, let reason):
                return .problem("test push", "the gateway closed the connection (\(code)): \(reason)", "")
            case .certificateRefused(let error):
                return .problem("test push", error.message, "name the gateway with --host, and its authority with --ca")
            case .connectionLost(let reason):
                return .problem(
                    "test push", "the gateway at \(client.host):\(client.port) cannot be reached: \(reason)",
                    "name it with --host and --port, and its authority with --ca")
            default: continue
            }
        }
        return nil
    }

    private func measured(_ device: SyncClient) async throws -> Finding {
        let id = "mss-doctor-\(UUID().uuidString)"
        let begin = ContinuousClock.now
        let answer = try await push(configuration.kind.needsUser ? user : client.deviceID, id)
        let stored = begin.duration(to: .now)
        guard (try? JSONDecoder().decode(APIClient.Answer.self, from: answer))?.success == true else {
            return .problem("test push", "the API refused it: \(String(decoding: answer, as: UTF8.self))", "")
        }
        for try await oplog in device.oplogs(of: configuration.bizType.text) {
            try await device.confirm(oplog)
            guard oplog.thirdMessageID == id else { continue }
            let arrived = begin.duration(to: .now)
            return .ok(
                "test push",
                "stored after \(stored.wholeMilliseconds) ms, at the device after \(arrived.wholeMilliseconds) ms")
        }
        return .problem("test push", "the device ended", "see the lines above")
    }
}
