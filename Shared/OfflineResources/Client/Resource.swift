public import Foundation

/// A resource as the app sees it: the service's version with the edits that were made here since.
public struct Resource: Sendable, Hashable {
    /// Below the base URL. What was created offline has a place of the library's own until the service has named one;
    /// both are good for every call then.
    public let uri: String
    public let kind: ResourceKind
    /// The local version.
    public let body: [UInt8]
    public let contentType: String?
    /// Of the service's version.
    public let etag: String?
    /// When the service's version came, by the device's clock; nil: there is none.
    public let fetchedAt: Date?
    /// It was not asked for now.
    public let isFromCache: Bool
    /// By its expiration policy, or as a push has said.
    public let isExpired: Bool
    /// Edits wait for the service, or for somebody.
    public let hasOfflineUpdates: Bool
    /// The service has another version; `ResourceClient.conflict(of:)` has both.
    public let hasConflict: Bool
    /// The service has refused an edit; `ResourceClient.loadOfflineResources()` says why.
    public let hasOfflineCommitError: Bool
    /// Nil: not pinned.
    public let pin: PinPriority?
    /// As saved with it.
    public let policy: EffectivePolicy

    /// The body as JSON; nil when it is none.
    public var json: ResourceValue? { ResourceValue.parse(body) }

    /// - Returns: nil when it is deleted here.
    init?(_ copy: LocalCopy, isFromCache: Bool) {
        guard let body = copy.body else { return nil }
        let resource = copy.resource
        uri = resource.uri.description
        kind = resource.kind
        self.body = body
        contentType = resource.contentType ?? copy.edits.first?.contentType
        etag = resource.etag
        fetchedAt = resource.body == nil ? nil : resource.fetchedAt
        self.isFromCache = isFromCache
        isExpired = copy.state == .expired
        hasOfflineUpdates = !copy.edits.isEmpty
        hasConflict = copy.edits.contains { $0.state == .conflict }
        hasOfflineCommitError = copy.edits.contains { $0.state == .refused }
        pin = resource.pin
        policy = resource.policy
    }

    /// A version that is not kept.
    init(_ version: ServiceVersion, at now: Date) {
        uri = version.uri.description
        kind = version.kind
        body = version.body
        contentType = version.contentType
        etag = version.etag
        fetchedAt = now
        isFromCache = false
        isExpired = false
        hasOfflineUpdates = false
        hasConflict = false
        hasOfflineCommitError = false
        pin = nil
        policy = version.policy
    }
}
