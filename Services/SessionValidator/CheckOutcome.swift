/// What one question to a tenant came to.
enum CheckOutcome: Hashable, Sendable {
    case valid
    /// The reason is for the device's app; it names no session.
    case invalid(String)
    /// No answer that counts: withholds, and is asked again (spec V4).
    case unknown(String)

    /// Whether the tenant answered at all, which is what its circuit breaker counts.
    var isAnswer: Bool {
        if case .unknown = self { return false }
        return true
    }
}
