package import AMQP
import ConnectionThread
package import Logging
package import PostgreSQL
package import ServiceKit

/// Executes the commands of one queue on a database connection and a thread of its own. It takes as many commands as
/// are ready, and sends them to the database in one round trip: a group commit without a timer.
package actor StoreWorker<Handler: CommandHandler> {
    private let thread: ConnectionThread
    private let connection: PostgresConnection
    private let queue: WorkQueue<AMQPDelivery>
    private let handler: Handler
    private let logger: Logger

    package nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    package init(
        name: String, configuration: PostgresConfiguration, queue: WorkQueue<AMQPDelivery>, handler: Handler,
        logger: Logger
    ) {
        thread = ConnectionThread(name: name)
        connection = Handler.connection(configuration, logger: logger)
        self.queue = queue
        self.handler = handler
        self.logger = logger
    }

    /// Executes commands until the queue is finished and empty. While the database is down, the commands fail and their
    /// callers repeat them; the next group connects again.
    package func run() async {
        while true {
            let deliveries = await queue.dequeue(upTo: Handler.groupBodies)
            if deliveries.isEmpty { break }
            let tasks = handler.tasks(of: deliveries, now: .now, logger: logger)
            if !tasks.isEmpty { handler.perform(tasks, on: connection) }
        }
        connection.close()
        thread.stop()
    }
}
