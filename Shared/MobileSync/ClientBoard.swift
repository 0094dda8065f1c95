import Synchronization

/// What the app, the engine and the connection of one client all see.
final class ClientBoard: Sendable {
    private struct State {
        var user: BoundUser?
        /// The gateway wants a new sign-in: the user stays the app's, but is not bound again by itself.
        var needsSignIn = false
        var status = SyncStatus.notAvailable
        var isRunning = false
    }

    private let state = Mutex(State())
    /// News for the app; a listener may be 64 behind.
    let events = Broadcast<SyncEvent>(buffer: 64)
    /// Something that the app waits for may be there: look again.
    let wakes = Broadcast<Void>(buffer: 1)
    /// The bound user has changed.
    let userChanges = Broadcast<Void>(buffer: 1)

    /// The user whose data the app may see now.
    var user: BoundUser? { state.withLock { $0.user } }
    /// The user that a connection binds.
    var userToBind: BoundUser? { state.withLock { $0.needsSignIn ? nil : $0.user } }
    /// The connection's status.
    var status: SyncStatus { state.withLock { $0.status } }

    /// Binds another user or session, or nobody.
    func setUser(_ user: BoundUser?) {
        state.withLock {
            $0.user = user
            $0.needsSignIn = false
        }
        userChanges.send(())
        wakes.send(())
    }

    /// Keeps the user unbound until the app binds again.
    func requireSignIn() { state.withLock { $0.needsSignIn = true } }

    /// Notes and announces a status.
    func setStatus(_ status: SyncStatus) {
        let isNews = state.withLock { state in
            defer { state.status = status }
            return state.status != status
        }
        if isNews { events.send(.status(status)) }
    }

    /// False when a run is at work already.
    func beginRun() -> Bool {
        state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning
        }
    }

    /// The run is over.
    func endRun() { state.withLock { $0.isRunning = false } }
}
