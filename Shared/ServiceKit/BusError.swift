/// Why a request over the bus has no answer.
package struct BusError: Error, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// Nobody has it: the broker is away, too much waits, or no queue took it.
        case unavailable
        /// It left and no answer came in time, or the connection fell: its outcome is unknown.
        case unanswered
        /// The other side says it could not; `notAttempted` when it had no effect.
        case failed(notAttempted: Bool)
    }

    package let code: Code
    package let description: String

    package init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
