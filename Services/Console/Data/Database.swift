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
    private static let watchInterval = Duration.seconds(2)

    private let lanes: [DatabaseLane]
    /// How long one query may take.
    private let limit: Duration
    private let waiting: Mutex<[Int]>
    private let health: HealthState
    private let logger: Logger

    /// - Parameters:
    ///   - laneCount: connections.
    ///   - limit: how long one query may take; one that has waited half as long for its turn is not begun any more.
    init(
        configuration: PostgresConfiguration, health: HealthState, logger: Logger, laneCount: Int = lanes,
        limit: Duration = .seconds(4)
    ) {
        self.limit = limit
        lanes = (0..<laneCount).map { _ in DatabaseLane(configuration: configuration, logger: logger) }
        waiting = Mutex(Array(repeating: 0, count: laneCount))
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
        let output: Output?
        do throws(PostgresError) {
            output = try await lanes[lane].run(query, within: limit, noLaterThan: .now + limit / 2)
        } catch {
            logger.warning(
                "a query failed", metadata: ["error": "\(error.message)", "request_id": "\(RequestName.current)"])
            throw ConsoleFault.databaseAway
        }
        guard let output else { throw ConsoleFault.busy }
        return output
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
