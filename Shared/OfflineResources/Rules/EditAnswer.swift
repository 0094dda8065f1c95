import Foundation

/// What the service said of an edit that it took.
struct EditAnswer: Sendable, Hashable {
    let etag: String?
    /// The new version, when the answer has it: a JSON value with a tag. A body without a tag may as well be a message.
    let body: [UInt8]?
    /// By the service's clock.
    let asOf: Date

    init(etag: String?, body: [UInt8]?, asOf: Date) {
        self.etag = etag.flatMap { ETag.isWellFormed($0) ? $0 : nil }
        self.asOf = asOf
        guard self.etag != nil, let body, case .object? = ResourceValue.parse(body) else {
            self.body = nil
            return
        }
        self.body = body
    }
}
