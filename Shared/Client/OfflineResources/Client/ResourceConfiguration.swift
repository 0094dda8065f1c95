import Foundation

/// The configuration of a `ResourceClient`.
public struct ResourceConfiguration: Sendable {
    /// The SQLite file of the cache and the edits. It is created when it is missing; its folder must exist. Only one
    /// client can use it at a time.
    public var storePath: String
    /// The policies by resource path, and the backend's default.
    public var policies: PolicyBook
    /// The largest size of the cache in bytes; 100 MB by default. Above it, nothing more is stored and edits fail.
    public var maxStoreSize: Int
    /// When expired copies are refreshed in the background; `REFRESH_NONE` by default.
    public var periodicRefreshPolicy: PeriodicRefreshPolicy
    /// The time between background refreshes; 120 s by default.
    public var periodicRefreshInterval: Duration
    /// Encrypts bodies in the store; nil, the default: bodies are not encrypted.
    public var cipher: (any ResourceCipher)?
    /// The JSON members that can contain an item's key, for collections without `uris`; the first member that exists
    /// counts; `id` by default.
    public var itemKeys: [String]
    /// The Sync ID of pushes about changed resources; `MSS_RESOURCES` by default.
    public var pushSyncID: String
    /// The URI that accepts batches of edits; nil, the default: the backend names it in the header `MSS-Sync-Batch`, or
    /// has none.
    public var batchPath: String?
    /// Whether the backend accepts resumable uploads, as in the IETF's draft "Resumable Uploads for HTTP"; false by
    /// default: `FileTransfers.upload` sends a file in one request.
    public var resumableUploads = false
    /// The conversion between bodies and values of the app's types; dates in ISO 8601 by default.
    public var coding = ResourceCoding.standard
    /// Receives notifications about resources; nil by default.
    public var callbacks: (any ResourceCallbacks)?

    /// The clock of the device.
    var clock: @Sendable () -> Date = { Date() }
    /// Makes random ids for edits.
    var makeID: @Sendable () -> String = Self.randomID

    /// Makes a configuration with the library's defaults and the values of a policy file.
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
            throw ResourceError(.invalidArgument, "maxStoreSize and periodicRefreshInterval must be above 0")
        }
        for policy in Array(policies.paths.values) + [policies.backendDefault] {
            if let fault = policy.fault { throw ResourceError(.invalidArgument, fault) }
        }
        if let batchPath { _ = try ResourceURI(batchPath) }
    }
}
