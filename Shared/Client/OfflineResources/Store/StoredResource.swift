import Foundation

/// The stored row of one resource: the backend's version.
struct StoredResource: Sendable, Hashable {
    let id: Int64
    let uri: ResourceURI
    let kind: ResourceKind
    let body: [UInt8]?
    let contentType: String?
    let etag: String?
    let fetchedAt: Date
    let asOf: Date
    let run: Int64
    let policy: EffectivePolicy
    let pin: PinPriority?
    let isInvalid: Bool
    let change: Int64
}
