import DeviceProtocol
import Foundation
import MobileSync
import SwiftProtobuf
import SyncModel
import TestSupport
import Testing

@Suite("Client library: calls that wait for their answer, against a test gateway", .timeLimit(.minutes(5)))
struct SyncClientCallTests {
    private let price = SyncOperation(id: "call-1", component: "PRICE", key: "17", name: "read")

    /// Runs an app that reads nothing, with a session that is greeted.
    private func withSession(
        _ body: (SyncClient, FakeGateway.Session) async throws -> Void
    ) async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running(reads: false) {
                let session = try await gateway.accept()
                _ = try await session.greet()
                try await body(app.client, session)
            }
        }
    }

    /// Calls while the body runs, then cancels the call if told so, and returns its error.
    private func failure(
        of client: SyncClient, within limit: Duration, isCancelled: Bool = false, _ body: () async throws -> Void
    ) async throws -> (any Error)? {
        try await withThrowingTaskGroup(of: (any Error)?.self) { [price] group in
            group.addTask {
                do {
                    _ = try await SyncCalls(client).call(price, within: limit)
                    return nil
                } catch {
                    return error
                }
            }
            try await body()
            if isCancelled { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }

    /// Takes the next frame of operations, and returns the ids in it.
    private func take(_ session: FakeGateway.Session) async throws -> [String] {
        let frame = try await session.next { packet -> Mss_Device_V1_SubmitOperations? in
            if case .submitOperations(let frame)? = packet.body { frame } else { nil }
        }
        session.send(.with { $0.operationsTaken.number = frame.number })
        return frame.operations.map(\.operationID)
    }

    private func push(_ json: String, as id: Int64, after: Int64, on session: FakeGateway.Session) {
        session.send(
            .with {
                $0.push.batches = [
                    .with {
                        $0.kind = .device
                        $0.bizType = ReservedSyncID.results.text
                        $0.after = after
                        $0.upto = id
                        $0.entries = [
                            .with {
                                $0.oplogID = id
                                $0.payload = Data(#"{"results":[\#(json)]}"#.utf8)
                            }
                        ]
                    }
                ]
            })
    }

    @Test("the call returns its own result, and no sequence has it") func answered() async throws {
        try await withSession { client, session in
            async let answer = SyncCalls(client).call(price, within: .seconds(60))
            #expect(try await take(session) == ["call-1"])
            let other = #"{"operationId":"x","userId":"u","component":"PRICE","accepted":true,"timestamp":1}"#
            let own =
                #"{"operationId":"call-1","userId":"u","component":"PRICE","accepted":true,"timestamp":2,"#
                + #""import":{"price":12.50}}"#
            push(other + "," + own, as: 1, after: 0, on: session)
            let result = try await answer
            #expect(result.isAccepted && result.imported == Array(#"{"price":12.50}"#.utf8))
            var results = client.operationResults().makeAsyncIterator()
            #expect(try await results.next()?.operationID == "x")
            let repeated = try await SyncCalls(client).call(price)
            #expect(repeated.isAccepted && repeated.imported == nil, "a known id is not executed again")
        }
    }

    @Test("without a network the call is not sent, and never will be") func notSent() async throws {
        try await FakeGateway.withStore { _, store in
            let app = try ClientApp(port: 9, store: store)
            let error = await #expect(throws: SyncError.self) {
                try await SyncCalls(app.client).call(price, within: .milliseconds(50))
            }
            #expect(error?.code == .notSent)
            #expect(try app.client.pendingOperations().isEmpty)
        }
    }

    @Test("a call without an answer in time has an unknown outcome; repeated, it gets the answer")
    func unknownOutcome() async throws {
        try await withSession { client, session in
            let failure = try await failure(of: client, within: .seconds(1)) {
                let sent = try await take(session)
                #expect(sent == ["call-1"])
            }
            let error = try #require(failure as? SyncError)
            #expect(error.code == .unknownOutcome && error.message.contains("call-1"))
            async let again = SyncCalls(client).call(price, within: .seconds(60))
            let refusal =
                #"{"operationId":"call-1","userId":"u","component":"PRICE","accepted":false,"code":409,"#
                + #""message":"sold","timestamp":2}"#
            push(refusal, as: 1, after: 0, on: session)
            let result = try await again
            #expect(!result.isAccepted && result.code == 409 && result.message == "sold")
        }
    }

    @Test("a cancelled call that was not sent is withdrawn; a call without a user is refused")
    func cancelled() async throws {
        try await FakeGateway.withStore { _, store in
            let app = try ClientApp(port: 9, store: store)
            let failure = try await failure(of: app.client, within: .seconds(600), isCancelled: true) {
                try await eventually("it waits", within: .seconds(30)) { try !app.client.pendingOperations().isEmpty }
            }
            #expect(failure is CancellationError)
            #expect(try app.client.pendingOperations().isEmpty)
            app.client.unbind()
            let error = await #expect(throws: SyncError.self) { try await SyncCalls(app.client).call(price) }
            #expect(error?.code == .invalidArgument)
        }
    }
}
