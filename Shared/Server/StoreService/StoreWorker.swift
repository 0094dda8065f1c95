import ConnectionThread
package import Logging
package import PostgreSQL
package import ServiceKit
package import SyncStore

/// Executes the commands of one queue on a database connection and a thread of its own. It takes as many commands as
/// are ready, and sends them to the database in one round trip: a group commit without a timer.
package actor StoreWorker<Handler: CommandHandler> {
    private let thread: ConnectionThread
    private let connection: PostgresConnection
    private let queue: WorkQueue<CommandBody<Handler.Command>>
    private let handler: Handler
    private let logger: Logger

    package nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// - Parameter stores: the number of stores that the process works with; nil: it works with any number.
    package init(
        name: String, configuration: PostgresConfiguration, stores: StoreLayout? = nil,
        queue: WorkQueue<CommandBody<Handler.Command>>, handler: Handler, logger: Logger
    ) {
        thread = ConnectionThread(name: name)
        connection = Handler.connection(configuration, stores: stores, logger: logger)
        self.queue = queue
        self.handler = handler
        self.logger = logger
    }

    /// Executes commands until the queue is finished and empty. While the database is down, the commands fail and their
    /// callers repeat them; the next group connects again.
    package func run() async {
        while true {
            let bodies = await queue.dequeue(upTo: Handler.groupBodies)
            if bodies.isEmpty { break }
            let tasks = handler.tasks(of: bodies, now: .now, logger: logger)
            if !tasks.isEmpty { handler.perform(tasks, on: connection) }
        }
        connection.close()
        thread.stop()
    }
}
