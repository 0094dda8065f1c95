import MobileSync
import Synchronization

@testable import LocalEntities

/// A feed with the data that a test adds; it records the calls.
final class FakeFeed: EntityFeed {
    private struct State {
        var calls: [String] = []
        var failing: Set<String> = []
        var answersWanted: [([String], String?)] = []
        var streams: [String: (AsyncStream<EntityBatch>, AsyncStream<EntityBatch>.Continuation)] = [:]
    }

    private let state = Mutex(State())
    /// The Sync ID of each confirmed batch.
    let confirmed = AsyncStream<String>.makeStream()
    /// Answers to pass to the synchroniser.
    let results = AsyncStream<SyncOperationResult>.makeStream()
    /// Connection states to pass to the synchroniser.
    let statuses = AsyncStream<(EntityConnectionStatus, String)>.makeStream()

    /// Removes and returns the calls so far.
    func drainCalls() -> [String] {
        state.withLock { state in
            defer { state.calls = [] }
            return state.calls
        }
    }

    /// The components and the user of each run that has requested answers.
    var answersWanted: [([String], String?)] { state.withLock { $0.answersWanted } }

    /// Makes this call fail from now on; nil: no call.
    func fail(_ call: String?) { state.withLock { $0.failing = call.map { [$0] } ?? [] } }

    func yield(_ batch: EntityBatch, of bizType: String) { stream(bizType).1.yield(batch) }

    private func stream(_ bizType: String) -> (AsyncStream<EntityBatch>, AsyncStream<EntityBatch>.Continuation) {
        state.withLock { state in
            if let known = state.streams[bizType] { return known }
            let made = AsyncStream<EntityBatch>.makeStream()
            state.streams[bizType] = made
            return made
        }
    }

    private func record(_ call: String) throws {
        try state.withLock { state in
            state.calls.append(call)
            if state.failing.contains(call) { throw FakeSubmitter.Outage() }
        }
    }

    func feed(_ bizType: String, to consume: (EntityBatch) async throws -> Void) async throws {
        for await batch in stream(bizType).0 {
            try await consume(batch)
            confirmed.continuation.yield(bizType)
        }
    }

    func feedResults(
        of components: Set<String>, ofUser userID: String?, to consume: (SyncOperationResult) async throws -> Void
    ) async throws {
        state.withLock { $0.answersWanted.append((components.sorted(), userID)) }
        for await result in results.stream {
            try await consume(result)
            confirmed.continuation.yield("answer \(result.operationID)")
        }
    }

    func feedStatus(to tell: (EntityConnectionStatus, String) -> Void) async {
        for await (status, reason) in statuses.stream {
            tell(status, reason)
            confirmed.continuation.yield("status")
        }
    }

    func suspend(_ bizType: String) async throws { try record("suspend \(bizType)") }
    func resume(_ bizType: String) async throws { try record("resume \(bizType)") }
    func recover(_ bizType: String) async throws { try record("recover \(bizType)") }
    func unsubscribe(_ bizType: String) async throws { try record("unsubscribe \(bizType)") }
    func connect() { try? record("connect") }
    func disconnect() { try? record("disconnect") }
}
