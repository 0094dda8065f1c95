/// Why the broker was not reached or did not do what was asked.
package struct AMQPError: Error, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// No connection, or the broker has blocked this one: nothing was queued.
        case disconnected
        /// Too much waits to be written: nothing was queued.
        case overloaded
        /// The connection failed, or the broker refused a declaration.
        case connection
        /// The broker refused to answer about a queue. The connection goes on.
        case refused
    }

    package let code: Code
    package let message: String

    package init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { "\(code): \(message)" }
}
