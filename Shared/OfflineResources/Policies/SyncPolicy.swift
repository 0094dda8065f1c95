/// Policies as somebody sets them, at one of the levels of precedence; nil: the next level says (spec, two-way §1).
public struct SyncPolicy: Sendable, Hashable {
    public var conflictResolutionPolicy: ConflictResolutionPolicy?
    public var evictionPolicy: EvictionPolicy?
    public var expirationPolicy: ExpirationPolicy?
    /// With `EXPIRE_AFTER`: how long after its fetch a copy expires; whole seconds in a policy file.
    public var expireAfter: Duration?
    public var fetchPolicy: FetchPolicy?
    /// Ignores fetch policies and stores nothing.
    public var noCache: Bool?
    public var updatePolicy: UpdatePolicy?

    /// Only what is given is set.
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

    /// `EXPIRE_AFTER` says nothing without a time, and a time below zero has no meaning.
    var fault: String? {
        if expirationPolicy == .expireAfter, expireAfter == nil {
            return "EXPIRE_AFTER needs expireAfter: give the time in seconds beside it"
        }
        if let expireAfter, expireAfter < .zero { return "expireAfter takes 0 seconds or more" }
        return nil
    }
}
