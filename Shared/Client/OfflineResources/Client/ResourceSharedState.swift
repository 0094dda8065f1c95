import Concurrency
import Foundation
import MobileSync

/// The state that a client's tasks share: the bound user, the connectivity, and the signal that wakes the loops of
/// `run()`.
final class ResourceSharedState: Sendable {
    /// A resource without a local copy that is fetched in the background for later use.
    struct ScheduledFetch: Sendable, Hashable {
        let owner: String
        let uri: ResourceURI
        let kind: ResourceKind
        let request: SyncPolicy
        let headers: ResourceHeaders
    }

    /// More scheduled fetches are dropped.
    private static let maxScheduledFetches = 1_000

    private struct State {
        var owner = ""
        var connectivity = Connectivity()
        var hits = 0
        var misses = 0
        var isRunning = false
        var isStart = true
        var scheduledFetches: [ScheduledFetch] = []
        var wakes: UInt64 = 0
        var transfers: Set<Transfer> = []
    }

    /// A resource or a file that only one transfer at a time can use.
    enum Transfer: Hashable, Sendable {
        case resource(ResourceURI, owner: String)
        /// A file that a download writes.
        case destination(path: String)
    }

    private let state = LockedValue(State())
    private let wakeSignals = EventBroadcaster<Void>(buffer: 1)
    private let clock: @Sendable () -> Date

    init(clock: @escaping @Sendable () -> Date) { self.clock = clock }

    // MARK: Users

    /// The bound user; empty: no user.
    var owner: String { state.withLock { $0.owner } }

    func setOwner(_ owner: String) {
        state.withLock { state in
            if state.owner != owner { (state.owner, state.isStart) = (owner, true) }
        }
        wake()
    }

    /// - Throws: `ResourceError.userChanged` when another user was bound since the call began.
    func checkOwner(_ owner: String) throws(ResourceError) {
        guard self.owner == owner else {
            throw ResourceError(.userChanged, "another user was bound during the call")
        }
    }

    /// Whether this is the first call since `run()` started or another user was bound.
    func consumeStart() -> Bool {
        state.withLock { state in
            defer { state.isStart = false }
            return state.isStart
        }
    }

    // MARK: Connectivity

    /// Whether requests may be sent now.
    var isOnline: Bool {
        let now = clock()
        return state.withLock { $0.connectivity.isOnline(at: now) }
    }

    /// The current connectivity, for the app.
    var status: SyncNetworkStatus {
        let now = clock()
        return state.withLock { $0.connectivity.status(at: now) }
    }

    /// The rest of the back-off after a failure; nil: no back-off.
    var pause: Duration? {
        let now = clock()
        let seconds = state.withLock { $0.connectivity.pause(at: now) }
        return seconds.map { .milliseconds(Int64($0 * 1_000) + 1) }
    }

    func networkChanged(isAvailable: Bool) {
        state.withLock { $0.connectivity.networkChanged(isAvailable: isAvailable) }
        wake()
    }

    func setOfflineMode(_ isOn: Bool) -> Bool {
        let hasEffect = state.withLock { $0.connectivity.setOfflineMode(isOn) }
        if hasEffect { wake() }
        return hasEffect
    }

    /// Ends the back-off: the network works.
    func answered() {
        let hasEffect = state.withLock { state in
            let former = state.connectivity
            state.connectivity.answered()
            return former != state.connectivity
        }
        if hasEffect { wake() }
    }

    func failed(retryAfter: TimeInterval?) {
        let now = clock()
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

    // MARK: Scheduled fetches

    func add(_ fetch: ScheduledFetch) {
        state.withLock { state in
            if state.scheduledFetches.count < Self.maxScheduledFetches, !state.scheduledFetches.contains(fetch) {
                state.scheduledFetches.append(fetch)
            }
        }
        wake()
    }

    func removeScheduledFetches() -> [ScheduledFetch] {
        state.withLock { state in
            defer { state.scheduledFetches = [] }
            return state.scheduledFetches
        }
    }

    // MARK: Transfers of files

    /// - Returns: false when a transfer in progress uses any of them.
    func begin(_ used: Set<Transfer>) -> Bool {
        state.withLock { state in
            guard state.transfers.isDisjoint(with: used) else { return false }
            state.transfers.formUnion(used)
            return true
        }
    }

    func end(_ used: Set<Transfer>) { state.withLock { $0.transfers.subtract(used) } }

    // MARK: Runs and wakes

    /// - Returns: false when `run()` is already running.
    func beginRun() -> Bool {
        state.withLock { state in
            guard !state.isRunning else { return false }
            (state.isRunning, state.isStart) = (true, true)
            return true
        }
    }

    func endRun() { state.withLock { $0.isRunning = false } }

    /// The number of wakes so far.
    var wakes: UInt64 { state.withLock { $0.wakes } }

    func wake() {
        state.withLock { $0.wakes += 1 }
        wakeSignals.send(())
    }

    /// Waits until requests can be sent, or until the task is cancelled.
    func waitUntilOnline() async {
        while !Task.isCancelled {
            let seen = wakes
            if isOnline { return }
            await wait(after: seen, upTo: pause)
        }
    }

    /// Waits for the first wake after `seen` wakes, or until the limit.
    ///
    /// - Parameter limit: the longest wait; nil: no limit.
    func wait(after seen: UInt64, upTo limit: Duration?) async {
        // Before the number is read, so that no wake is missed.
        let stream = wakeSignals.listen()
        guard wakes == seen else { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await _ in stream { return } }
            if let limit { group.addTask { try? await Task.sleep(for: limit) } }
            await group.next()
            group.cancelAll()
        }
    }
}
