import ConnectionThread
import Logging
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import SyncStore

/// Maintenance: makes the partitions of the coming weeks, and removes what has ended. No push waits for any of it, and
/// neither do readiness and leases, which are another connection's (`DatabaseWatch`).
actor PartitionKeeper: Service {
    /// Partitions are made this far ahead, so an attempt that fails can wait.
    private static let weeksAhead = 3
    /// Between two looks that found everything done.
    private static let pause = Duration.seconds(3_600)
    /// After a failed attempt, while pushes of the present week have their partition.
    private static let pauseAfterFailure = Duration.seconds(300)

    private let thread = ConnectionThread(name: "partitions")
    private let connection: PostgresConnection
    private let logger: Logger
    private var makesAt = ContinuousClock.now
    private var removesAt = ContinuousClock.now

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(configuration: PostgresConfiguration, logger: Logger) {
        connection = SyncDatabase.connection(configuration, logger: logger)
        self.logger = logger
    }

    func run() async throws {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            if .now >= makesAt { makePartitions() }
            removeEnded()
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: .seconds(1)) }
        }
        connection.close()
        thread.stop()
    }

    /// Makes what is missing. A failure is urgent only while pushes have nowhere to go.
    private func makePartitions() {
        do throws(PostgresError) {
            try connection.run(OplogStore.ensurePartitions(weeksAhead: Self.weeksAhead), within: .seconds(10))
            makesAt = .now + Self.pause
        } catch {
            let isWritable = (try? connection.run(OplogStore.hasPresentPartition, within: .seconds(3))) ?? false
            makesAt = isWritable ? .now + Self.pauseAfterFailure : .now
            logger.warning(
                "partitions of the coming weeks were not made; it is tried again",
                metadata: [
                    "error": "\(error.message)", "in": "\(isWritable ? Self.pauseAfterFailure : .seconds(1))",
                ])
        }
    }

    private func removeEnded() {
        // Far more than come in a second.
        let limit = 10_000
        tidy("nonces") { () throws(PostgresError) in
            try connection.run(AdmissionStore.removeEndedNonces(limit: limit), within: .seconds(10))
        }
        tidy("revocations") { () throws(PostgresError) in
            try connection.run(RevocationStore.removeOld(limit: limit), within: .seconds(10))
        }
        guard .now >= removesAt else { return }
        removesAt = .now + Self.pause
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
    /// a step that fails here comes up again in an hour.
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
