/// Policies of one level of precedence; nil: the next level decides (RES6).
public struct SyncPolicy: Sendable, Hashable {
    public var conflictResolutionPolicy: ConflictResolutionPolicy?
    public var evictionPolicy: EvictionPolicy?
    public var expirationPolicy: ExpirationPolicy?
    /// With `EXPIRE_AFTER`: the time from the fetch until the copy expires. In a policy file it is in whole seconds.
    public var expireAfter: Duration?
    public var fetchPolicy: FetchPolicy?
    /// True: ignores fetch policies and stores nothing.
    public var noCache: Bool?
    public var updatePolicy: UpdatePolicy?

    /// Makes a level with the given policies only.
    public init(
        fetchPolicy: FetchPolicy? = nil, expirationPolicy: ExpirationPolicy? = nil, expireAfter: Duration? = nil,
        evictionPolicy: EvictionPolicy? = nil, updatePolicy: UpdatePolicy? = nil,
        conflictResolutionPolicy: ConflictResolutionPolicy? = nil, noCache: Bool? = nil
    ) {
        self.conflictResolutionPolicy = conflictResolutionPolicy
        self.evictionPolicy = evictionPolicy
        self.expirationPolicy = expirationPolicy
        self.expireAfter = expireAfter
        self.fetchPolicy = fetchPolicy
        self.noCache = noCache
        self.updatePolicy = updatePolicy
    }

    /// The error in the policies, or nil: `EXPIRE_AFTER` needs a time, and a time cannot be negative.
    var fault: String? {
        if expirationPolicy == .expireAfter, expireAfter == nil {
            return "EXPIRE_AFTER needs expireAfter; add the time in seconds"
        }
        if let expireAfter, expireAfter < .zero { return "expireAfter must be 0 seconds or more" }
        return nil
    }
}
