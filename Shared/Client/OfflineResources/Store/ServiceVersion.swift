import Foundation

/// A version of a resource that the backend returned.
struct ServiceVersion: Sendable, Hashable {
    let uri: ResourceURI
    let kind: ResourceKind
    let body: [UInt8]
    let contentType: String?
    let etag: String?
    /// The time at which the version was current, by the backend's clock.
    let asOf: Date
    let policy: EffectivePolicy
    /// The caller knows that a newer version exists.
    var isInvalid = false
}
