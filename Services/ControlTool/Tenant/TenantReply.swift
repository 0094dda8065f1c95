import NIOCore

/// What a played tenant does with a call.
struct TenantReply: Sendable {
    var status = 200
    var body = "{}"
    /// In seconds; nil: none is named.
    var retryAfter: Int?
    /// How long it takes.
    var delay = TimeAmount.zero
    /// The connection ends instead of an answer.
    var isLost = false
}
