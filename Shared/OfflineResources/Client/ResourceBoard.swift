import Foundation
import Synchronization

/// What a client's tasks share: who is bound, whether the service can be reached, and what wakes the loops.
final class ResourceBoard: Sendable {
    /// A resource that is not here and is to be fetched for the next time.
    struct Errand: Sendable, Hashable {
        let owner: String
        let uri: ResourceURI
        let kind: ResourceKind
        let request: SyncPolicy
    }

    /// More are forgotten.
    private static let mostErrands = 1_000

    private struct State {
        var owner = ""
        var connectivity = Connectivity()
        var hits = 0
        var misses = 0
        var isRunning = false
        var isStart = true
        var errands: [Errand] = []
        var wakes: UInt64 = 0
        var lastListener: UInt64 = 0
        var listeners: [UInt64: AsyncStream<Void>.Continuation] = [:]
    }

    private let state = Mutex(State())

    // MARK: Users

    /// Empty: nobody.
    var owner: String { state.withLock { $0.owner } }

    func setOwner(_ owner: String) {
        state.withLock { state in
            if state.owner != owner { (state.owner, state.isStart) = (owner, true) }
        }
        wake()
    }

    /// Whether this is the first time after the start, or after another user was bound.
    func takeStart() -> Bool {
        state.withLock { state in
            defer { state.isStart = false }
            return state.isStart
        }
    }

    // MARK: Connectivity

    func isOnline(at now: Date) -> Bool { state.withLock { $0.connectivity.isOnline(at: now) } }
    func status(at now: Date) -> SyncNetworkStatus { state.withLock { $0.connectivity.status(at: now) } }
    func pause(at now: Date) -> TimeInterval? { state.withLock { $0.connectivity.pause(at: now) } }

    func networkChanged(isAvailable: Bool) {
        state.withLock { $0.connectivity.networkChanged(isAvailable: isAvailable) }
        wake()
    }

    func setOfflineMode(_ isOn: Bool) -> Bool {
        let hasEffect = state.withLock { $0.connectivity.setOfflineMode(isOn) }
        if hasEffect { wake() }
        return hasEffect
    }

    /// - Returns: whether the service had failed before.
    @discardableResult
    func answered() -> Bool {
        state.withLock { state in
            let former = state.connectivity
            state.connectivity.answered()
            return former != state.connectivity
        }
    }

    func failed(at now: Date, retryAfter: TimeInterval?) {
        state.withLock {
            $0.connectivity.failed(at: now, retryAfter: retryAfter, random: Double.random(in: 0..<1))
        }
    }

    // MARK: Counters

    var hits: Int { state.withLock { $0.hits } }
    var misses: Int { state.withLock { $0.misses } }

    func count(_ lookup: FetchDecision.Lookup) {
        state.withLock { state in
            switch lookup {
            case .hit: state.hits += 1
            case .miss: state.misses += 1
            case .none: break
            }
        }
    }

    // MARK: Errands

    func add(_ errand: Errand) {
        state.withLock { state in
            if state.errands.count < Self.mostErrands, !state.errands.contains(errand) { state.errands.append(errand) }
        }
        wake()
    }

    func takeErrands() -> [Errand] {
        state.withLock { state in
            defer { state.errands = [] }
            return state.errands
        }
    }

    // MARK: Runs and wakes

    /// - Returns: false when a run is at work already.
    func beginRun() -> Bool {
        state.withLock { state in
            guard !state.isRunning else { return false }
            (state.isRunning, state.isStart) = (true, true)
            return true
        }
    }

    func endRun() { state.withLock { $0.isRunning = false } }

    /// Rises with every wake.
    var wakes: UInt64 { state.withLock { $0.wakes } }

    func wake() {
        let listeners = state.withLock { state in
            state.wakes += 1
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.yield() }
    }

    /// Returns at the first wake after those that were counted, or when the time is up.
    ///
    /// - Parameter limit: nil: as long as it takes.
    func wait(after seen: UInt64, upTo limit: Duration?) async {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let (id, isOver) = state.withLock { state in
            state.lastListener += 1
            state.listeners[state.lastListener] = continuation
            return (state.lastListener, state.wakes != seen)
        }
        defer { state.withLock { _ = $0.listeners.removeValue(forKey: id) } }
        if isOver { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await _ in stream { return } }
            if let limit { group.addTask { try? await Task.sleep(for: limit) } }
            await group.next()
            group.cancelAll()
        }
    }
}
