import ConnectionThread
import Logging
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import SyncStore

/// Makes the partitions of the coming weeks, drops what has ended, and shows whether the database is ready for this
/// process.
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
                // Far more than come in a second, and little enough for a statement that also asks whether all is well.
                try connection.run(AdmissionStore.removeEndedNonces(limit: 10_000), within: .seconds(3))
            } else {
                try connection.run(OplogStore.ensurePartitions(weeksAhead: 3), within: .seconds(10))
                try dropEnded()
                try connection.run(AdmissionStore.removeEndedQuotas, within: .seconds(5))
                try connection.run(RevocationStore.removeOld, within: .seconds(10))
                lastMade = .now
            }
            health.set("postgres", isReady: true)
        } catch {
            health.set("postgres", isReady: false)
            logger.warning("the database is not ready", metadata: ["error": "\(error.message)"])
        }
    }

    /// Retention: a detached partition is out of every query's way before its files go. Detaching waits for queries
    /// that are at work, and lets new ones pass (PostgreSQL manual, ALTER TABLE). Another writer may be at it too;
    /// what this one does not get done comes up again in an hour.
    private func dropEnded() throws(PostgresError) {
        for partition in try connection.run(OplogStore.endedPartitions, within: .seconds(5)) {
            do throws(PostgresError) {
                for step in partition.detaching { try connection.execute(script: step, within: .seconds(60)) }
                try connection.run(partition.drop, within: .seconds(60))
                logger.info("a partition of oplogs has ended", metadata: ["partition": "\(partition.name)"])
            } catch {
                guard case .server = error.code else { throw error }
                try connection.execute(script: "RESET ROLE", within: .seconds(5))
                logger.warning(
                    "a partition was not dropped",
                    metadata: ["partition": "\(partition.name)", "error": "\(error.message)"])
            }
        }
    }
}
