import ConnectionThread
import Logging
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import SyncStore

/// Creates the partitions of the coming weeks and removes expired rows and partitions. Pushes, readiness and leases do
/// not wait for it: they use other connections (`WriterHeartbeat`).
actor WriterMaintenance: Service {
    /// Partitions are created so many weeks ahead, so a failed attempt can wait.
    private static let weeksAhead = 3
    /// The pause after everything was done.
    private static let pause = Duration.seconds(3_600)
    /// The pause after a failed attempt, if the current week has its partition.
    private static let pauseAfterFailure = Duration.seconds(300)

    private let thread = ConnectionThread(name: "partitions")
    private let connection: PostgresConnection
    private let stores: StoreLayout
    private let logger: Logger
    private var nextCreation = ContinuousClock.now
    private var nextRemoval = ContinuousClock.now

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(configuration: PostgresConfiguration, stores: StoreLayout = .single, logger: Logger) {
        connection = SyncDatabase.connection(configuration, stores: stores, logger: logger)
        self.stores = stores
        self.logger = logger
    }

    func run() async throws {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            if .now >= nextCreation { createPartitions() }
            removeExpired()
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: .seconds(1)) }
        }
        connection.close()
        thread.stop()
    }

    /// Creates the missing partitions. A failure is urgent only while the current week has no partition, because pushes
    /// then cannot be stored.
    private func createPartitions() {
        do throws(PostgresError) {
            for store in stores.stores {
                let creation = OplogStore.ensurePartitions(weeksAhead: Self.weeksAhead, of: store)
                try connection.run(creation, within: .seconds(10))
            }
            nextCreation = .now + Self.pause
        } catch {
            let present = OplogStore.hasPresentPartition(in: stores)
            let isWritable = (try? connection.run(present, within: .seconds(3))) ?? false
            nextCreation = isWritable ? .now + Self.pauseAfterFailure : .now
            logger.warning(
                "partitions of the coming weeks were not created; retrying",
                metadata: [
                    "error": "\(error.message)", "in": "\(isWritable ? Self.pauseAfterFailure : .seconds(1))",
                ])
        }
    }

    private func removeExpired() {
        // Far more rows than expire in a second.
        let limit = 10_000
        remove("nonces") { () throws(PostgresError) in
            try connection.run(AdmissionStore.removeEndedNonces(limit: limit), within: .seconds(10))
        }
        remove("revocations") { () throws(PostgresError) in
            try connection.run(RevocationStore.removeOld(limit: limit), within: .seconds(10))
        }
        guard .now >= nextRemoval else { return }
        nextRemoval = .now + Self.pause
        remove("roll-outs") { () throws(PostgresError) in
            try connection.run(RolloutStore.forgetEnded(in: stores), within: .seconds(10))
        }
        remove("contents of records") { () throws(PostgresError) in
            try connection.run(RecordStore.forgetContents, within: .seconds(10))
        }
        for store in stores.stores {
            remove("partitions") { () throws(PostgresError) in try dropEndedPartitions(of: store) }
        }
        remove("quotas") { () throws(PostgresError) in
            try connection.run(AdmissionStore.removeEndedQuotas, within: .seconds(10))
        }
    }

    /// Runs one removal. If it fails, the rows only take space: the process logs the error and continues with the other
    /// removals.
    private func remove(_ kind: String, by removal: () throws(PostgresError) -> Void) {
        do throws(PostgresError) {
            try removal()
        } catch {
            logger.warning(
                "expired rows were not removed; retrying", metadata: ["kind": "\(kind)", "error": "\(error.message)"])
        }
    }

    /// Drops the partitions that have ended. A partition is detached before its files are removed, so no query waits
    /// for the removal. Detaching waits for running queries and lets new ones pass (PostgreSQL manual, ALTER TABLE).
    /// Another writer may do the same at this time; a step that fails here is repeated in an hour.
    private func dropEndedPartitions(of store: StoreSchema) throws(PostgresError) {
        for partition in try connection.run(OplogStore.endedPartitions(of: store), within: .seconds(5)) {
            do throws(PostgresError) {
                for step in partition.detaching { try connection.execute(script: step, within: .seconds(60)) }
                try connection.run(partition.drop, within: .seconds(60))
                logger.info("dropped an ended oplog partition", metadata: ["partition": "\(partition.name)"])
            } catch {
                guard case .server = error.code else { throw error }
                try connection.execute(script: "RESET ROLE", within: .seconds(5))
                logger.warning(
                    "an ended oplog partition was not dropped; retrying in an hour",
                    metadata: ["partition": "\(partition.name)", "error": "\(error.message)"])
            }
        }
    }
}
