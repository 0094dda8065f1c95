import Logging
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import SyncStore
import Synchronization

/// The console's few connections to the database, each query on the one with the fewest before it.
///
/// A console that is slow or dead holds up nobody: its role has no part in the way of pushes (reliability, fault 51).
final class Database: Service {
    /// Connections: people look at pages, a few at a time.
    private static let lanes = 4
    /// Queries that may wait for one connection; above that the answer is "busy".
    private static let waitingMaximum = 32
    private static let limit = Duration.seconds(4)
    private static let watchInterval = Duration.seconds(2)

    private let lanes: [DatabaseLane]
    private let waiting: Mutex<[Int]>
    private let health: HealthState
    private let logger: Logger

    init(configuration: PostgresConfiguration, health: HealthState, logger: Logger) {
        lanes = (0..<Self.lanes).map { _ in DatabaseLane(configuration: configuration, logger: logger) }
        waiting = Mutex(Array(repeating: 0, count: Self.lanes))
        self.health = health
        self.logger = logger
        health.set("postgres", isReady: false)
    }

    /// Runs a query.
    ///
    /// - Throws: `ConsoleFault.databaseAway` when the database is away or too busy.
    func run<Output>(_ query: Query<Output>) async throws(ConsoleFault) -> Output {
        let lane: Int? = waiting.withLock { waiting in
            guard let lane = waiting.indices.min(by: { waiting[$0] < waiting[$1] }),
                waiting[lane] < Self.waitingMaximum
            else { return nil }
            waiting[lane] += 1
            return lane
        }
        guard let lane else { throw ConsoleFault.busy }
        defer { waiting.withLock { $0[lane] -= 1 } }
        do throws(PostgresError) {
            return try await lanes[lane].run(query, within: Self.limit)
        } catch {
            logger.warning("a query failed", metadata: ["error": "\(error.message)"])
            throw ConsoleFault.databaseAway
        }
    }

    /// Shows whether the database is there, until graceful shutdown.
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
        for lane in lanes { await lane.close() }
    }
}
