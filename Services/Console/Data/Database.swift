import ConnectionThread
import Logging
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import SyncStore
import Synchronization

/// The console's connections to the database; each query goes to the connection with the fewest waiting queries.
///
/// A slow or dead console delays no push: its database role takes no part in the delivery of pushes (F51).
final class Database: Service {
    /// The default number of connections; few operators use a console at one time.
    private static let defaultWorkerCount = 4
    /// Queries that can wait for one connection; above it the response is "busy".
    private static let waitingMaximum = 32
    private static let watchInterval = Duration.seconds(2)

    private let workers: [ConsoleStoreWorker]
    /// The longest run time of one query.
    private let limit: Duration
    private let waiting: Mutex<[Int]>
    private let health: HealthState
    private let logger: Logger

    /// - Parameters:
    ///   - workerCount: the number of connections.
    ///   - limit: the longest run time of one query. A query that has waited half of this time is not started.
    init(
        configuration: PostgresConfiguration, health: HealthState, logger: Logger,
        workerCount: Int = defaultWorkerCount,
        limit: Duration = .seconds(4)
    ) {
        self.limit = limit
        workers = (0..<workerCount).map { _ in ConsoleStoreWorker(configuration: configuration, logger: logger) }
        waiting = Mutex(Array(repeating: 0, count: workerCount))
        self.health = health
        self.logger = logger
        health.set("postgres", isReady: false)
    }

    /// Runs a query.
    ///
    /// - Throws: `databaseAway` when the query fails; `busy` when too many queries wait.
    func run<Output>(_ query: Query<Output>) async throws(ConsoleFault) -> Output {
        let index: Int? = waiting.withLock { waiting in
            guard let index = waiting.indices.min(by: { waiting[$0] < waiting[$1] }),
                waiting[index] < Self.waitingMaximum
            else { return nil }
            waiting[index] += 1
            return index
        }
        guard let index else { throw ConsoleFault.busy }
        defer { waiting.withLock { $0[index] -= 1 } }
        let output: Output?
        do throws(PostgresError) {
            output = try await workers[index].run(query, within: limit, noLaterThan: .now + limit / 2)
        } catch {
            logger.warning(
                "a query failed", metadata: ["error": "\(error.message)", "request_id": "\(RequestName.current)"])
            throw ConsoleFault.databaseAway
        }
        guard let output else { throw ConsoleFault.busy }
        return output
    }

    /// Reports to the health state whether the database answers, until graceful shutdown.
    func run() async throws {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            do throws(ConsoleFault) {
                _ = try await run(Query(PostgresStatement("SELECT 1")) { _ in })
                health.set("postgres", isReady: true)
            } catch {
                health.set("postgres", isReady: false)
            }
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.watchInterval) }
        }
        for worker in workers { await worker.close() }
    }
}

/// One connection to the database and its thread.
private actor ConsoleStoreWorker {
    private let thread = ConnectionThread(name: "console-db")
    private let connection: PostgresConnection

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(configuration: PostgresConfiguration, logger: Logger) {
        connection = SyncDatabase.connection(configuration, logger: logger)
    }

    /// Runs one query. After a lost connection the next query connects again.
    ///
    /// - Returns: nil, without running the query, after `latest`.
    func run<Output>(
        _ query: Query<Output>, within limit: Duration, noLaterThan latest: ContinuousClock.Instant
    ) throws(PostgresError) -> Output? {
        guard .now <= latest else { return nil }
        return try connection.run(query, within: limit)
    }

    /// Ends the connection and its thread; call it last.
    func close() {
        connection.close()
        thread.stop()
    }
}
