import ConnectionThread
import Logging
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import SyncStore

/// Makes the partitions of the coming weeks, drops what has ended, keeps the record of leases, moves roll-outs on in
/// time, and shows whether the database is ready for this process.
actor PartitionKeeper: Service {
    private let thread = ConnectionThread(name: "partitions")
    private let connection: PostgresConnection
    private let rollouts: RolloutClock
    private let health: HealthState
    private let logger: Logger
    private var lastMade: ContinuousClock.Instant?
    private var leases = LeaseWatch()

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(configuration: PostgresConfiguration, rollouts: RolloutClock, health: HealthState, logger: Logger) {
        connection = SyncDatabase.connection(configuration, logger: logger)
        self.rollouts = rollouts
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
        let isDue = lastMade.map { $0.duration(to: .now) >= .seconds(3_600) } ?? true
        do throws(PostgresError) {
            if isDue {
                try connection.run(OplogStore.ensurePartitions(weeksAhead: 3), within: .seconds(10))
                lastMade = .now
            } else {
                _ = try connection.run(ControlStore.version, within: .seconds(3))
            }
            health.set("postgres", isReady: true)
        } catch {
            health.set("postgres", isReady: false)
            logger.warning("the database is not ready", metadata: ["error": "\(error.message)"])
            return
        }
        do throws(PostgresError) {
            try leases.tick(in: connection, clock: .system)
        } catch {
            logger.warning("the record of leases was not kept", metadata: ["error": "\(error.message)"])
        }
        do throws(PostgresError) {
            try rollouts.tick(on: connection)
        } catch {
            logger.warning("roll-outs were not moved on", metadata: ["error": "\(error.message)"])
        }
        // Far more than come in a second.
        let limit = 10_000
        tidy("nonces") { () throws(PostgresError) in
            try connection.run(AdmissionStore.removeEndedNonces(limit: limit), within: .seconds(10))
        }
        tidy("revocations") { () throws(PostgresError) in
            try connection.run(RevocationStore.removeOld(limit: limit), within: .seconds(10))
        }
        guard isDue else { return }
        tidy("roll-outs") { () throws(PostgresError) in
            try connection.run(RolloutStore.forgetEnded, within: .seconds(10))
        }
        tidy("contents of records") { () throws(PostgresError) in
            try connection.run(RecordStore.forgetContents, within: .seconds(10))
        }
        tidy("partitions") { () throws(PostgresError) in try dropEnded() }
        tidy("quotas") { () throws(PostgresError) in
            try connection.run(AdmissionStore.removeEndedQuotas, within: .seconds(10))
        }
    }

    /// Removes what has ended. What cannot be removed now takes space and nothing else: the process goes on, and so does
    /// the removing of everything else.
    private func tidy(_ what: String, _ remove: () throws(PostgresError) -> Void) {
        do throws(PostgresError) {
            try remove()
        } catch {
            logger.warning(
                "what has ended was not removed", metadata: ["what": "\(what)", "error": "\(error.message)"])
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
