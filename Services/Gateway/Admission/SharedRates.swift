import SyncModel

/// The rates that devices share with others of their app and of their user; pure (SEC11).
struct SharedRates: Sendable {
    /// A user of an app. Not private: the compiler of Swift 6.3 crashes on a private type in the table.
    struct UserKey: Hashable {
        fileprivate let instanceID: InstanceID
        fileprivate let userID: UserID
    }

    /// The rates of one app.
    struct App {
        fileprivate var connects: TokenBucket
        fileprivate var requests: TokenBucket
        fileprivate var changes: TokenBucket
    }

    private let limits: AdmissionLimits
    private var apps: ExpiringTable<InstanceID, App>
    private var users: ExpiringTable<UserKey, TokenBucket>

    init(limits: AdmissionLimits) {
        self.limits = limits
        let saved = Duration.seconds(TokenBucket.savedSeconds)
        apps = ExpiringTable(keepingFor: saved, maximum: AdmissionLimits.remembered)
        users = ExpiringTable(keepingFor: saved, maximum: AdmissionLimits.remembered)
    }

    /// Charges one connect to an app; false: the app has used up its rate.
    mutating func chargeConnect(_ instanceID: InstanceID, at now: ContinuousClock.Instant) -> Bool {
        app(instanceID, at: now) { $0.connects.consume(at: now) }
    }

    /// Charges one bind to a user; false: the user has used up the rate.
    mutating func chargeBind(_ userID: UserID, of instanceID: InstanceID, at now: ContinuousClock.Instant) -> Bool {
        let new = TokenBucket(perSecond: limits.userBinds, at: now)
        return users.update(UserKey(instanceID: instanceID, userID: userID), at: now, new: new) { $0.consume(at: now) }
    }

    /// Charges a frame to the app.
    ///
    /// - Returns: the time to wait before the next frame is read.
    mutating func charge(
        _ cost: FrameCost, of instanceID: InstanceID, at now: ContinuousClock.Instant
    ) -> Duration {
        switch cost {
        case .plain: .zero
        case .request: app(instanceID, at: now) { $0.requests.owe(at: now) }
        case .change: app(instanceID, at: now) { $0.changes.owe(at: now) }
        }
    }

    private mutating func app<Result>(
        _ instanceID: InstanceID, at now: ContinuousClock.Instant, _ change: (inout App) -> Result
    ) -> Result {
        let new = App(
            connects: TokenBucket(perSecond: limits.appConnects, at: now),
            requests: TokenBucket(perSecond: limits.appRequests, at: now),
            changes: TokenBucket(perSecond: limits.appChanges, at: now))
        return apps.update(instanceID, at: now, new: new, change)
    }
}
