import SyncModel
import Synchronization

/// What the app, the engine and the connection of one client all see.
final class ClientBoard: Sendable {
    private struct State {
        var user: BoundUser?
        /// How often the app has bound a user.
        var requests: UInt64 = 0
        /// The gateway wants a new sign-in: the user stays the app's, but is not bound again by itself.
        var needsSignIn = false
        var status = SyncStatus.notAvailable
        var isWanted = true
        var isForeground = true
        /// When the app in the background is to be without a connection; nil: not for that reason.
        var backgroundEnd: ContinuousClock.Instant?
        var network: NetworkPath?
        var isCaughtUp = false
        var deviceID = ""
        /// Values of the kind `session`, of this user.
        var sessionParameters: (userID: String?, values: [DeviceParameter]) = (nil, [])
        var isRunning = false
        /// Iterators by the Sync ID that they take; nil takes all.
        var readers: [String?: Int] = [:]
    }

    private let state = Mutex(State())
    /// News for the app; a listener may be 64 behind.
    let events = Broadcast<SyncEvent>(buffer: 64)
    /// Something that the app waits for may be there: look again.
    let wakes = Broadcast<Void>(buffer: 1)
    /// The bound user, or what the app reads, has changed.
    let changes = Broadcast<Void>(buffer: 1)
    /// Something has to be done sooner than the engine last said.
    let alarms = Broadcast<Void>(buffer: 1)
    /// A connection may be wanted, or wanted sooner, than before.
    let urges = Broadcast<Void>(buffer: 1)

    /// The user whose data the app may see now.
    var user: BoundUser? { state.withLock { $0.user } }
    /// The user that a connection binds.
    var userToBind: BoundUser? { state.withLock { $0.needsSignIn ? nil : $0.user } }
    /// The connection's status.
    var status: SyncStatus { state.withLock { $0.status } }

    /// The app binds another user or session, the same anew, or nobody.
    func setUser(_ user: BoundUser?) {
        state.withLock {
            $0.requests += 1
            var user = user
            user?.request = $0.requests
            user?.ownershipEpoch = 0
            // A sign-out ends the values of the session.
            if $0.user?.userID != user?.userID { $0.sessionParameters = (user?.userID, []) }
            $0.user = user
            $0.needsSignIn = false
        }
        changes.send(())
        wakes.send(())
        urges.send(())
    }

    /// A gateway has said that this device owns the user by the app's bind: the next connections need not ask for it.
    func settle(request: UInt64, epoch: Int64) {
        state.withLock { if $0.user?.request == request { $0.user?.settle(epoch: epoch) } }
    }

    /// The session's values of a user who is still bound.
    func sessionParameters(ofUser userID: String?) -> [DeviceParameter] {
        state.withLock { $0.sessionParameters.userID == userID ? $0.sessionParameters.values : [] }
    }

    /// Sets a value for the session, or takes it away; a user who is not bound any more has none.
    func setSessionParameter(_ parameter: DeviceParameter, ofUser userID: String?) {
        state.withLock { state in
            guard state.sessionParameters.userID == userID else { return }
            state.sessionParameters.values.removeAll {
                $0.bizType == parameter.bizType && $0.name.isSame(as: parameter.name)
            }
            if parameter.value != nil { state.sessionParameters.values.append(parameter) }
        }
    }

    /// Keeps the user unbound until the app binds again, unless it has since the refused one was bound.
    func requireSignIn(of refused: BoundUser?) {
        state.withLock { if $0.user == refused { $0.needsSignIn = true } }
    }

    /// Notes and announces a status.
    func setStatus(_ status: SyncStatus) {
        let isNews = state.withLock { state in
            defer { state.status = status }
            return state.status != status
        }
        if isNews { events.send(.status(status)) }
    }

    // MARK: Whether there is to be a connection

    /// Whether there is to be a connection now: the app wants one, a network is there, and an app in the background has
    /// not used up its time.
    func wantsConnection(at now: ContinuousClock.Instant) -> Bool {
        state.withLock { state in
            state.isWanted && state.network?.isAvailable ?? true && state.backgroundEnd.map { now < $0 } ?? true
        }
    }

    /// When the background's time is used up; nil: never, as things are.
    var backgroundEnd: ContinuousClock.Instant? { state.withLock { $0.backgroundEnd } }
    /// Whether the app is in the foreground.
    var isForeground: Bool { state.withLock { $0.isForeground } }
    /// The network as the app last told.
    var network: NetworkPath? { state.withLock { $0.network } }
    /// Everything that waited when the present connection opened, or the user was bound, is here.
    var isCaughtUp: Bool {
        get { state.withLock { $0.isCaughtUp } }
        set { state.withLock { $0.isCaughtUp = newValue } }
    }

    /// The device as the service knows it.
    var deviceID: String {
        get { state.withLock { $0.deviceID } }
        set { state.withLock { $0.deviceID = newValue } }
    }

    /// The app wants a connection, or none.
    func setWanted(_ isWanted: Bool) {
        state.withLock { $0.isWanted = isWanted }
        announceWish()
    }

    /// The app came to the foreground, or left it.
    ///
    /// - Parameter time: how long the connection is kept in the background; nil: for good.
    func setForeground(_ isForeground: Bool, backgroundTime time: Duration?) {
        state.withLock { state in
            guard state.isForeground != isForeground else { return }
            state.isForeground = isForeground
            state.backgroundEnd = isForeground ? nil : time.map { .now + $0 }
        }
        announceWish()
    }

    /// The device is on another network, or on none.
    func setNetwork(_ network: NetworkPath) {
        state.withLock { $0.network = network }
        announceWish()
    }

    private func announceWish() {
        changes.send(())
        alarms.send(())
        urges.send(())
    }

    // MARK: Readers

    /// The app takes data of a Sync ID, nil for all, until it ends that as often as it began it.
    func beginReading(_ bizType: String?) {
        state.withLock { $0.readers[bizType, default: 0] += 1 }
        changes.send(())
    }

    /// One of those that took this Sync ID has ended.
    func endReading(_ bizType: String?) {
        state.withLock { state in
            let left = (state.readers[bizType] ?? 1) - 1
            state.readers[bizType] = left > 0 ? left : nil
        }
        changes.send(())
    }

    /// Whether the app takes data of this Sync ID now.
    func isRead(_ bizType: String) -> Bool {
        state.withLock { $0.readers[bizType] != nil || $0.readers[nil as String?] != nil }
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
