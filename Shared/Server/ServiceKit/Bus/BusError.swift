/// Why a request over the bus has no reply.
package struct BusError: Error, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// Not delivered: the broker is unavailable, too many bytes wait, or no queue accepted the message.
        case unavailable
        /// Sent, but no reply arrived in time, or the connection was lost: the outcome is unknown.
        case unanswered
        /// The other side reports a failure; `notAttempted` when the command had no effect.
        case failed(notAttempted: Bool)
    }

    package let code: Code
    package let description: String

    package init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
