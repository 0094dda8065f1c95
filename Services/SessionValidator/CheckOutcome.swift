/// What one question to a tenant came to.
enum CheckOutcome: Hashable, Sendable {
    case valid
    /// The reason is for the device's app; it names no session.
    case invalid(String)
    /// No answer that counts: withholds, and is asked again (spec V4).
    case unknown(String)
    /// Unknown too, because nobody answered: no connection, no time left, or a server that says that it is down.
    case noAnswer(String)

    /// Whether the tenant's endpoint was there to answer, which is all that its circuit breaker counts. An answer that
    /// does not count is one: else who makes up sessions that a tenant answers with an error would keep it from being
    /// asked about those of others.
    var isAnswer: Bool {
        if case .noAnswer = self { return false }
        return true
    }
}
