import ConnectionThread
import Logging
import PostgreSQL
import ServiceKit
import SyncStore

/// One PostgreSQL connection that records what became of pushes that are stored nowhere: as many as wait in one
/// transaction, since gateways answer for each channel by itself.
actor LiveOutcomeLane {
    /// Pushes whose outcome is known, and who is to hear that it is on record.
    private struct Item: Sendable {
        let pushes: [OplogStore.LivePush]
        let completion: @Sendable () -> Void
    }

    /// Items of one transaction.
    private static let groupMax = 256

    private let thread = ConnectionThread(name: "live-outcomes")
    private let connection: PostgresConnection
    // Bounded by the prefetch of the append queue: each push in it waits for its answer.
    private let queue = WorkQueue<Item>()
    private let logger: Logger

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(configuration: PostgresConfiguration, logger: Logger) {
        connection = SyncDatabase.connection(configuration, logger: logger)
        self.logger = logger
    }

    /// Records the pushes and then calls back on the lane's thread. It calls back without the record, too, when the
    /// database cannot be reached: what the gateways said is true, and only a repeat would ask for the record.
    nonisolated func record(_ pushes: [OplogStore.LivePush], completion: @escaping @Sendable () -> Void) {
        queue.add(Item(pushes: pushes, completion: completion))
    }

    /// Ends the lane once it has recorded what waits.
    nonisolated func finish() { queue.finish() }

    /// Works until the lane is finished.
    func run() async {
        while true {
            let items = await queue.take(upTo: Self.groupMax)
            if items.isEmpty { break }
            let pushes = items.flatMap(\.pushes)
            do throws(PostgresError) {
                // Once more after a failure: without the record a repeat is answered SYSTEM_ERROR.
                do throws(PostgresError) {
                    try connection.recordOutcomes(of: pushes)
                } catch {
                    try connection.recordOutcomes(of: pushes)
                }
            } catch {
                logger.warning(
                    "outcomes of live pushes were not recorded", metadata: ["error": "\(error.message)"])
            }
            for item in items { item.completion() }
        }
        connection.close()
        thread.stop()
    }
}
