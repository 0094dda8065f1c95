import SyncModel

/// How often the devices of an app, and those of a user, do what costs the store something; pure (reliability SEC11).
struct SharedRates: Sendable {
    /// A user of an app; not private, because the compiler of Swift 6.3 then fails on its table.
    struct UserKey: Hashable {
        fileprivate let instanceID: InstanceID
        fileprivate let userID: UserID
    }

    /// What is counted of an app.
    struct App {
        fileprivate var connects: TokenBucket
        fileprivate var requests: TokenBucket
        fileprivate var changes: TokenBucket
    }

    private let limits: AdmissionLimits
    private var apps: RecentTable<InstanceID, App>
    private var users: RecentTable<UserKey, TokenBucket>

    init(limits: AdmissionLimits) {
        self.limits = limits
        let saved = Duration.seconds(TokenBucket.savedSeconds)
        apps = RecentTable(keepingFor: saved, maximum: AdmissionLimits.remembered)
        users = RecentTable(keepingFor: saved, maximum: AdmissionLimits.remembered)
    }

    /// A device of the app connects; false: too often.
    mutating func connects(_ instanceID: InstanceID, at now: ContinuousClock.Instant) -> Bool {
        app(instanceID, at: now) { $0.connects.take(at: now) }
    }

    /// A device binds the user; false: too often.
    mutating func binds(_ userID: UserID, of instanceID: InstanceID, at now: ContinuousClock.Instant) -> Bool {
        let new = TokenBucket(perSecond: limits.userBinds, at: now)
        return users.update(UserKey(instanceID: instanceID, userID: userID), at: now, new: new) { $0.take(at: now) }
    }

    /// A frame of a device of the app came in; how long the device is to wait before it sends another.
    mutating func took(
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
