import Foundation

/// The backend's response to one edit, sent alone or in a batch.
struct EditOutcome: Sendable, Hashable {
    let status: Int
    let etag: String?
    let location: String?
    let body: [UInt8]?
    let asOf: Date
}
