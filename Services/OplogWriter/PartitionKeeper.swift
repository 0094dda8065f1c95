import ConnectionThread
import Logging
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import SyncStore

/// Makes the partitions of the coming weeks, and shows whether the database is ready for this process.
actor PartitionKeeper: Service {
    private let thread = ConnectionThread(name: "partitions")
    private let connection: PostgresConnection
    private let health: HealthState
    private let logger: Logger
    private var lastMade: ContinuousClock.Instant?

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(configuration: PostgresConfiguration, health: HealthState, logger: Logger) {
        connection = SyncDatabase.connection(configuration, logger: logger)
        self.health = health
        self.logger = logger
    }

    func run() async throws {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            check()
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: .seconds(1)) }
        }
        connection.close()
        thread.stop()
    }

    private func check() {
        do throws(PostgresError) {
            if lastMade.map({ $0.duration(to: .now) < .seconds(3_600) }) ?? false {
                _ = try connection.run(PostgresStatement("SELECT 1"), within: .seconds(3))
            } else {
                try connection.run(OplogStore.ensurePartitions(weeksAhead: 3), within: .seconds(10))
                lastMade = .now
            }
            health.set("postgres", isReady: true)
        } catch {
            health.set("postgres", isReady: false)
            logger.warning("the database is not ready", metadata: ["error": "\(error.message)"])
        }
    }
}
