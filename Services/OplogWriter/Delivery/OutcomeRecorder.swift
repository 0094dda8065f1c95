import ConnectionThread
import Logging
import PostgreSQL
import ServiceKit
import SyncStore

/// Records the outcomes of non-persistent pushes on a database connection of its own. Gateways reply for each channel
/// by itself; the recorder writes all waiting outcomes in one transaction for each store.
actor OutcomeRecorder {
    /// Pushes with a known outcome, and the callback for the time when it is recorded.
    private struct Item: Sendable {
        let pushes: [OplogStore.LivePush]
        let completion: @Sendable () -> Void
    }

    /// The largest number of items in one transaction.
    private static let groupMax = 256

    private let thread = ConnectionThread(name: "live-outcomes")
    private let database: DeliveryDatabase
    // The prefetch of the append queue bounds this: each push here waits for its reply.
    private let queue = WorkQueue<Item>()
    private let logger: Logger

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(configuration: PostgresConfiguration, stores: StoreLayout, logger: Logger) {
        database = DeliveryDatabase(
            SyncDatabase.connection(configuration, stores: stores, logger: logger), stores)
        self.logger = logger
    }

    /// Records the outcomes, then calls back on the recorder's thread. If the database is unreachable, it calls back
    /// without a record: the replies of the gateways are true, and only a repeated push would need the record.
    nonisolated func record(_ pushes: [OplogStore.LivePush], completion: @escaping @Sendable () -> Void) {
        queue.add(Item(pushes: pushes, completion: completion))
    }

    /// Ends `run` after the waiting outcomes are recorded.
    nonisolated func finish() { queue.finish() }

    /// Records outcomes until `finish` was called and no item waits.
    func run() async {
        while true {
            let items = await queue.dequeue(upTo: Self.groupMax)
            if items.isEmpty { break }
            let pushes = items.flatMap(\.pushes)
            do throws(PostgresError) {
                // One retry: without the record, a repeated push is answered with SYSTEM_ERROR.
                do throws(PostgresError) {
                    try database.recordOutcomes(of: pushes)
                } catch {
                    try database.recordOutcomes(of: pushes)
                }
            } catch {
                logger.warning(
                    "outcomes of non-persistent pushes were not recorded", metadata: ["error": "\(error.message)"])
            }
            for item in items { item.completion() }
        }
        database.connection.close()
        thread.stop()
    }
}
