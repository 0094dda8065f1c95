/// How a queue stands (AMQP 0-9-1, queue.declare-ok).
package struct AMQPQueueDepth: Hashable, Sendable {
    /// Messages that wait; those that a consumer has in hand are not among them.
    package let messages: Int
    package let consumers: Int

    package init(messages: Int, consumers: Int) {
        self.messages = messages
        self.consumers = consumers
    }
}
