/// The policies that apply to one resource. They are saved with it (RES6).
public struct EffectivePolicy: Sendable, Hashable, Codable {
    public var conflictResolutionPolicy: ConflictResolutionPolicy
    public var evictionPolicy: EvictionPolicy
    public var expirationPolicy: ExpirationPolicy
    public var expireAfter: Duration
    public var fetchPolicy: FetchPolicy
    public var noCache: Bool
    public var updatePolicy: UpdatePolicy

    /// The library's defaults of items and collections (RES1).
    public static let standard = EffectivePolicy(
        conflictResolutionPolicy: .preserveConflict, evictionPolicy: .manualEviction,
        expirationPolicy: .expireOnRestart, expireAfter: .seconds(Int.max), fetchPolicy: .fetchFromServiceIfOnline,
        noCache: false, updatePolicy: .queueIfOffline)

    /// The library's defaults of files: they expire after a day (RES1).
    public static let file = EffectivePolicy(
        conflictResolutionPolicy: .serverWins, evictionPolicy: .evictOnExpiryAtStartup,
        expirationPolicy: .expireAfter, expireAfter: .seconds(86_400), fetchPolicy: .fetchFromServiceIfOnline,
        noCache: false, updatePolicy: .queueIfOffline)

    /// The library's defaults of a kind.
    static func libraryDefault(of kind: ResourceKind) -> EffectivePolicy { kind == .file ? file : standard }

    /// These policies, overridden by stronger levels.
    ///
    /// - Parameter levels: the strongest first.
    func overridden(by levels: [SyncPolicy]) -> EffectivePolicy {
        var policy = self
        for level in levels.reversed() {
            policy.conflictResolutionPolicy = level.conflictResolutionPolicy ?? policy.conflictResolutionPolicy
            policy.evictionPolicy = level.evictionPolicy ?? policy.evictionPolicy
            policy.expirationPolicy = level.expirationPolicy ?? policy.expirationPolicy
            policy.expireAfter = level.expireAfter ?? policy.expireAfter
            policy.fetchPolicy = level.fetchPolicy ?? policy.fetchPolicy
            policy.noCache = level.noCache ?? policy.noCache
            policy.updatePolicy = level.updatePolicy ?? policy.updatePolicy
        }
        return policy
    }
}
