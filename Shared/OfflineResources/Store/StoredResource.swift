import Foundation

/// What the store has of one resource: the service's version.
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
