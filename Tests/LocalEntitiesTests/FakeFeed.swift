import MobileSync
import Synchronization

@testable import LocalEntities

/// Gives what a test puts in, and writes down what is asked of it.
final class FakeFeed: EntityFeed {
    private struct State {
        var calls: [String] = []
        var failing: Set<String> = []
        var answersWanted: [([String], String?)] = []
        var streams: [String: (AsyncStream<EntityBatch>, AsyncStream<EntityBatch>.Continuation)] = [:]
    }

    private let state = Mutex(State())
    /// Sync IDs, one for each batch that was confirmed.
    let confirmed = AsyncStream<String>.makeStream()
    /// Answers to be given.
    let results = AsyncStream<SyncOperationResult>.makeStream()
    /// States of the connection to be told.
    let statuses = AsyncStream<(EntityConnectionStatus, String)>.makeStream()

    /// What was asked, each time forgetting it.
    func takeCalls() -> [String] {
        state.withLock { state in
            defer { state.calls = [] }
            return state.calls
        }
    }

    /// Components and user of each run that has asked for answers.
    var answersWanted: [([String], String?)] { state.withLock { $0.answersWanted } }

    /// This call fails from now on; nil: none does.
    func fail(_ call: String?) { state.withLock { $0.failing = call.map { [$0] } ?? [] } }

    func give(_ batch: EntityBatch, of bizType: String) { stream(bizType).1.yield(batch) }

    private func stream(_ bizType: String) -> (AsyncStream<EntityBatch>, AsyncStream<EntityBatch>.Continuation) {
        state.withLock { state in
            if let known = state.streams[bizType] { return known }
            let made = AsyncStream<EntityBatch>.makeStream()
            state.streams[bizType] = made
            return made
        }
    }

    private func note(_ call: String) throws {
        try state.withLock { state in
            state.calls.append(call)
            if state.failing.contains(call) { throw FakeSubmitter.Outage() }
        }
    }

    func feed(_ bizType: String, to take: (EntityBatch) async throws -> Void) async throws {
        for await batch in stream(bizType).0 {
            try await take(batch)
            confirmed.continuation.yield(bizType)
        }
    }

    func feedResults(
        of components: Set<String>, ofUser userID: String?, to take: (SyncOperationResult) async throws -> Void
    ) async throws {
        state.withLock { $0.answersWanted.append((components.sorted(), userID)) }
        for await result in results.stream {
            try await take(result)
            confirmed.continuation.yield("answer \(result.operationID)")
        }
    }

    func feedStatus(to tell: (EntityConnectionStatus, String) -> Void) async {
        for await (status, reason) in statuses.stream {
            tell(status, reason)
            confirmed.continuation.yield("status")
        }
    }

    func suspend(_ bizType: String) async throws { try note("suspend \(bizType)") }
    func resume(_ bizType: String) async throws { try note("resume \(bizType)") }
    func recover(_ bizType: String) async throws { try note("recover \(bizType)") }
    func unsubscribe(_ bizType: String) async throws { try note("unsubscribe \(bizType)") }
    func connect() { try? note("connect") }
    func disconnect() { try? note("disconnect") }
}
