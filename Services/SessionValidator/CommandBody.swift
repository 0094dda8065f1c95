import AMQP
import Synchronization

/// A consumed body and how many of its commands are still to be answered.
final class CommandBody: Sendable {
    let delivery: AMQPDelivery
    let replyTo: String
    /// Whether it is still to be settled.
    let isHeld: Bool
    private let open: Mutex<Int>

    /// - Parameter commands: at least one.
    init(delivery: AMQPDelivery, replyTo: String, commands: Int, isHeld: Bool) {
        self.delivery = delivery
        self.replyTo = replyTo
        self.isHeld = isHeld
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
