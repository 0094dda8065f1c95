import Foundation
import MobileSync

/// The backend's response to an applied edit.
struct EditAnswer: Sendable, Hashable {
    let etag: String?
    /// The new version, when the response contains it: a JSON object with a tag. A body without a tag could be a
    /// message.
    let body: [UInt8]?
    /// The time of the response by the backend's clock.
    let asOf: Date

    init(etag: String?, body: [UInt8]?, asOf: Date) {
        self.etag = etag.flatMap { ETag.isWellFormed($0) ? $0 : nil }
        self.asOf = asOf
        guard self.etag != nil, let body, case .object? = JSONValue.parse(body) else {
            self.body = nil
            return
        }
        self.body = body
    }
}
