import Concurrency
import SyncModel

/// State that the app, the engine and the connection of one client share.
final class ClientSharedState: Sendable {
    private struct State {
        var user: BoundUser?
        /// The number of bind and unbind calls of the app.
        var requests: UInt64 = 0
        /// The gateway requires a new sign-in. The user stays set, but the client does not bind it again before the app
        /// does.
        var needsSignIn = false
        var status = SyncStatus.notAvailable
        var isWanted = true
        var isForeground = true
        /// The time when the background time ends; nil for no end.
        var backgroundEnd: ContinuousClock.Instant?
        var network: NetworkPath?
        var isCaughtUp = false
        var deviceID = ""
        /// The values of the kind `session`, with their user.
        var sessionParameters: (userID: String?, values: [DeviceParameter]) = (nil, [])
        var isRunning = false
        /// The number of iterators by Sync ID; the key nil is for all Sync IDs.
        var readers: [String?: Int] = [:]
    }

    private let state = LockedValue(State())
    /// Events for the app. A listener can be 64 events behind.
    let events = EventBroadcaster<SyncEvent>(buffer: 64)
    /// Signals that data for the app may be available.
    let dataSignals = EventBroadcaster<Void>(buffer: 1)
    /// Signals that observed data may have changed.
    let changeSignals = EventBroadcaster<Void>(buffer: 1)
    /// Signals that a connection must read the state again.
    let stateSignals = EventBroadcaster<Void>(buffer: 1)
    /// Signals that the engine needs a tick earlier than it last said.
    let timerSignals = EventBroadcaster<Void>(buffer: 1)
    /// Signals that a connection may be wanted, or wanted sooner.
    let connectSignals = EventBroadcaster<Void>(buffer: 1)

    /// The user whose data the app can see now.
    var user: BoundUser? { state.withLock { $0.user } }
    /// The user that a connection binds.
    var userToBind: BoundUser? { state.withLock { $0.needsSignIn ? nil : $0.user } }
    /// The connection's status.
    var status: SyncStatus { state.withLock { $0.status } }

    /// Sets the user and session that the app binds, also when they are unchanged. Nil unbinds.
    func setUser(_ user: BoundUser?) {
        state.withLock {
            $0.requests += 1
            var user = user
            user?.request = $0.requests
            user?.ownershipEpoch = 0
            // A sign-out ends the session's values.
            if $0.user?.userID != user?.userID { $0.sessionParameters = (user?.userID, []) }
            $0.user = user
            $0.needsSignIn = false
        }
        stateSignals.send(())
        dataSignals.send(())
        changeSignals.send(())
        connectSignals.send(())
    }

    /// Records that this device owns the user's data, as the bind call with this number requested. Later binds do not
    /// request it.
    func recordOwnership(request: UInt64, epoch: Int64) {
        state.withLock { if $0.user?.request == request { $0.user?.recordOwnership(epoch: epoch) } }
    }

    /// Returns the session's values of a user; none when another user is bound.
    func sessionParameters(ofUser userID: String?) -> [DeviceParameter] {
        state.withLock { $0.sessionParameters.userID == userID ? $0.sessionParameters.values : [] }
    }

    /// Sets or removes a value of the session. Does nothing when another user is bound.
    func setSessionParameter(_ parameter: DeviceParameter, ofUser userID: String?) {
        state.withLock { state in
            guard state.sessionParameters.userID == userID else { return }
            state.sessionParameters.values.removeAll {
                $0.bizType == parameter.bizType && $0.name.isSame(as: parameter.name)
            }
            if parameter.value != nil { state.sessionParameters.values.append(parameter) }
        }
    }

    /// Stops binding the refused user until the app binds again. Does nothing when the app has bound another user
    /// meanwhile.
    func requireSignIn(of refused: BoundUser?) {
        state.withLock { if $0.user == refused { $0.needsSignIn = true } }
    }

    /// Sets the status, and publishes a change.
    func setStatus(_ status: SyncStatus) {
        let isNew = state.withLock { state in
            defer { state.status = status }
            return state.status != status
        }
        if isNew { events.send(.status(status)) }
    }

    // MARK: Connection control

    /// Whether the client needs a connection now: the app allows it, a network is available, and the background time is
    /// not over.
    func wantsConnection(at now: ContinuousClock.Instant) -> Bool {
        state.withLock { state in
            state.isWanted && state.network?.isAvailable ?? true && state.backgroundEnd.map { now < $0 } ?? true
        }
    }

    /// The end of the background time; nil when no end is set.
    var backgroundEnd: ContinuousClock.Instant? { state.withLock { $0.backgroundEnd } }
    /// Whether the app is in the foreground.
    var isForeground: Bool { state.withLock { $0.isForeground } }
    /// The network that the app reported last.
    var network: NetworkPath? { state.withLock { $0.network } }
    /// Whether the client has received the complete backlog of the last connect or bind.
    var isCaughtUp: Bool {
        get { state.withLock { $0.isCaughtUp } }
        set { state.withLock { $0.isCaughtUp = newValue } }
    }

    /// The device id that the service knows.
    var deviceID: String {
        get { state.withLock { $0.deviceID } }
        set { state.withLock { $0.deviceID = newValue } }
    }

    /// Allows or forbids a connection.
    func setWanted(_ isWanted: Bool) {
        state.withLock { $0.isWanted = isWanted }
        signalChange()
    }

    /// Records that the app entered or left the foreground.
    ///
    /// - Parameter time: the time for which the connection stays open in the background; nil for no limit.
    func setForeground(_ isForeground: Bool, backgroundTime time: Duration?) {
        state.withLock { state in
            guard state.isForeground != isForeground else { return }
            state.isForeground = isForeground
            state.backgroundEnd = isForeground ? nil : time.map { .now + $0 }
        }
        signalChange()
    }

    /// Records the device's network.
    func setNetwork(_ network: NetworkPath) {
        state.withLock { $0.network = network }
        signalChange()
    }

    private func signalChange() {
        stateSignals.send(())
        timerSignals.send(())
        connectSignals.send(())
    }

    // MARK: Readers

    /// Counts an iterator that reads a Sync ID; nil for all Sync IDs.
    func beginReading(_ bizType: String?) {
        state.withLock { $0.readers[bizType, default: 0] += 1 }
        stateSignals.send(())
    }

    /// Removes one iterator of a Sync ID.
    func endReading(_ bizType: String?) {
        state.withLock { state in
            let left = (state.readers[bizType] ?? 1) - 1
            state.readers[bizType] = left > 0 ? left : nil
        }
        stateSignals.send(())
    }

    /// Whether the app reads this Sync ID now.
    func isRead(_ bizType: String) -> Bool {
        state.withLock { $0.readers[bizType] != nil || $0.readers[nil as String?] != nil }
    }

    /// Marks the client as running. Returns false when it already runs.
    func beginRun() -> Bool {
        state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning
        }
    }

    /// Marks the client as stopped.
    func endRun() { state.withLock { $0.isRunning = false } }
}
