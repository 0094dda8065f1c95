public import Foundation
public import MobileSync

/// A resource as the app sees it: the backend's version with the edits that were made on this device since.
public struct Resource: Sendable, Hashable {
    /// The URI, relative to the base URL. A resource that was created offline has a temporary URI of the library until
    /// the backend has named it. After that, every call accepts both URIs.
    public let uri: String
    public let kind: ResourceKind
    /// The body, including local edits.
    public let body: [UInt8]
    public let contentType: String?
    /// The entity tag of the backend's version; nil when it has none.
    public let etag: String?
    /// The time at which the backend's version was fetched, by the device's clock; nil when there is none.
    public let fetchedAt: Date?
    /// Whether this fetch was answered from the cache.
    public let isFromCache: Bool
    /// Whether the copy is expired, by its expiration policy or because of a push.
    public let isExpired: Bool
    /// Whether there are edits that the backend has not applied.
    public let hasOfflineUpdates: Bool
    /// Whether an edit conflicts with the backend's version. `ResourceClient.conflict(of:)` returns both versions.
    public let hasConflict: Bool
    /// Whether the backend has refused an edit. `ResourceClient.loadOfflineResources()` returns the reason.
    public let hasOfflineCommitError: Bool
    /// The priority of its edits and refreshes; nil when the resource is not pinned.
    public let pin: PinPriority?
    /// The policies that are saved with the resource.
    public let policy: EffectivePolicy

    /// The body as JSON; nil when it is not JSON.
    public var json: JSONValue? { JSONValue.parse(body) }

    /// - Returns: nil when the resource is deleted here.
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

    /// A version that the cache does not store.
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
