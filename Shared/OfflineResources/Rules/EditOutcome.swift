import Foundation

/// A service's answer to one edit, by itself or in a batch.
struct EditOutcome: Sendable, Hashable {
    let status: Int
    let etag: String?
    let location: String?
    let body: [UInt8]?
    let asOf: Date
}
