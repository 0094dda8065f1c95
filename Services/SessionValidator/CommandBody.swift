import AMQP
import Synchronization

/// A consumed body and how many of its commands are still to be answered.
final class CommandBody: Sendable {
    let delivery: AMQPDelivery
    let replyTo: String
    private let open: Mutex<Int>

    /// - Parameter commands: at least one.
    init(delivery: AMQPDelivery, replyTo: String, commands: Int) {
        self.delivery = delivery
        self.replyTo = replyTo
        open = Mutex(commands)
    }

    /// One of its commands was answered.
    ///
    /// - Returns: whether it was the last one, so that the body can be settled.
    func answeredOne() -> Bool {
        open.withLock { open in
            open -= 1
            return open == 0
        }
    }
}
