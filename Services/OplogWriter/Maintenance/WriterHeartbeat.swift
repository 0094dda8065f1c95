import ConnectionThread
import Logging
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import SyncStore

/// Once a second: publishes whether the database is ready for this process, updates the lease record, and makes the
/// roll-out stages that are due. `WriterMaintenance` has a connection of its own, so that maintenance delays none of
/// this.
actor WriterHeartbeat: Service {
    private let thread = ConnectionThread(name: "watch")
    private let connection: PostgresConnection
    private let stores: StoreLayout
    private let rollouts: RolloutClock
    private let databaseTime: SharedDatabaseClock
    private let health: HealthState
    private let logger: Logger
    private var leases = LeaseExpiryTracker()

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// - Parameter databaseTime: gets a new reading once a second. The process judges deadlines of commands by it.
    init(
        configuration: PostgresConfiguration, stores: StoreLayout = .single, rollouts: RolloutClock,
        databaseTime: SharedDatabaseClock, health: HealthState, logger: Logger
    ) {
        self.databaseTime = databaseTime
        connection = SyncDatabase.connection(configuration, stores: stores, logger: logger)
        self.stores = stores
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
        do throws(PostgresError) {
            let isWritable = try connection.run(OplogStore.hasPresentPartition(in: stores), within: .seconds(3))
            health.set("postgres", isReady: isWritable)
            let askedAt = ContinuousClock.now
            databaseTime.observe(try connection.run(DatabaseTime.now, within: .seconds(3)), askedAt: askedAt)
            if !isWritable {
                logger.error("pushes cannot be stored: the oplog has no partition for the current week")
            }
        } catch {
            health.set("postgres", isReady: false)
            logger.warning("the database is not ready", metadata: ["error": "\(error.message)"])
            return
        }
        do throws(PostgresError) {
            try leases.tick(in: DeliveryDatabase(connection, stores), clock: .system)
        } catch {
            logger.warning("the lease record was not updated; retrying in 1 s", metadata: ["error": "\(error.message)"])
        }
        do throws(PostgresError) {
            try rollouts.tick(on: connection)
        } catch {
            logger.warning(
                "due roll-out stages were not made or not announced; retrying in 1 s",
                metadata: ["error": "\(error.message)"])
        }
    }
}
