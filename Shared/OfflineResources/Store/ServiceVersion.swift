import Foundation

/// A resource's version as the service has given it.
struct ServiceVersion: Sendable, Hashable {
    let uri: ResourceURI
    let kind: ResourceKind
    let body: [UInt8]
    let contentType: String?
    let etag: String?
    /// By the service's clock: as of when it was the newest.
    let asOf: Date
    let policy: EffectivePolicy
    /// The caller knows that there is a newer one.
    var isInvalid = false
}
