import Foundation

/// What a client of offline resources needs to know.
public struct ResourceConfiguration: Sendable {
    /// The SQLite file of cache and edits; created when it is missing, in a folder that exists. One client at a time.
    public var storePath: String
    /// Policies by resource path, and the backend's default.
    public var policies: PolicyBook
    /// Bytes that the cache may take; 100 MB by default. Then nothing more is stored, and edits fail.
    public var maxStoreSize: Int
    /// `REFRESH_NONE` by default.
    public var periodicRefreshPolicy: PeriodicRefreshPolicy
    /// 120 s by default.
    public var periodicRefreshInterval: Duration
    /// Seals bodies in the store; nil, the default: they are stored as they are.
    public var cipher: (any ResourceCipher)?
    /// Members that an item's key may be in, for collections that come without `uris`; `id` by default.
    public var itemKeys: [String]
    /// The Sync ID whose oplogs tell of changed resources; `MSS_RESOURCES` by default.
    public var pushSyncID: String
    /// Where the backend takes many edits at once; nil, the default: it says so in the header `MSS-Sync-Batch`, or not.
    public var batchPath: String?
    /// Who is told of changes.
    public var callbacks: (any ResourceCallbacks)?

    /// The device's.
    var clock: @Sendable () -> Date = { Date() }
    /// Random ids, for edits.
    var makeID: @Sendable () -> String = Self.randomID

    /// The library's defaults, with what a policy file says in their place.
    public init(storePath: String, policyFile: PolicyFile? = nil) {
        self.storePath = storePath
        policies = policyFile?.book ?? PolicyBook()
        maxStoreSize = policyFile?.maxStoreSize ?? 100_000_000
        periodicRefreshPolicy = policyFile?.periodicRefreshPolicy ?? .refreshNone
        periodicRefreshInterval = policyFile?.periodicRefreshInterval ?? .seconds(120)
        itemKeys = ["id"]
        pushSyncID = "MSS_RESOURCES"
    }

    static let randomID: @Sendable () -> String = {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let digits = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    func check() throws(ResourceError) {
        guard maxStoreSize > 0, periodicRefreshInterval > .zero else {
            throw ResourceError(.invalidArgument, "maxStoreSize and periodicRefreshInterval take more than 0")
        }
        for policy in Array(policies.paths.values) + [policies.backendDefault] {
            if let fault = policy.fault { throw ResourceError(.invalidArgument, fault) }
        }
        if let batchPath { _ = try ResourceURI(batchPath) }
    }
}
