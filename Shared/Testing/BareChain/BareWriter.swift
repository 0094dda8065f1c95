import AMQP
import ConnectionThread
import Glibc
import Logging
import PostgreSQL
import Synchronization

/// The writer of the bare chain: stores pushes and passes them on.
///
/// Cost model: it takes everything that waits, inserts up to `rowsMax` rows with one statement, which is one
/// transaction, and sends a record to the gateway and one to the ingest for each push. No delay is added to wait for
/// more pushes.
struct BareWriter {
    /// Unacknowledged bodies. They bound the memory of the writer.
    private static let prefetch: UInt16 = 200

    let broker: AMQPConfiguration
    let database: PostgresConfiguration
    /// Processor time that the writer wastes for each push.
    let wasted: Duration
    let logger: Logger

    /// Consumes pushes until the process ends.
    func run() async throws {
        let intake = PushIntake()
        let client = AMQPClient(
            configuration: broker, topology: ChainQueue.pushes.topology,
            consumptions: [
                AMQPConsumption(queue: ChainQueue.pushes.rawValue, prefetch: Self.prefetch) { intake.add($0) }
            ], events: .chain(), logger: logger)
        let store = PushStore(client: client, database: database, wasted: wasted, logger: logger)
        let thread = ConnectionThread(name: "store") {
            store.store(intake.removeAll())
            return ConnectionThread.Sleep(descriptor: nil, limit: nil)
        }
        intake.attach(thread)
        try await client.run()
        thread.stop()
    }
}

/// The deliveries that wait for the thread of the database connection.
private final class PushIntake: Sendable {
    private let state: Mutex<(waiting: [AMQPDelivery], thread: ConnectionThread?)> = Mutex(([], nil))

    /// Sets the thread to wake. The client must not run before.
    func attach(_ thread: ConnectionThread) { state.withLock { $0.thread = thread } }

    func add(_ deliveries: [AMQPDelivery]) {
        let thread = state.withLock { state in
            state.waiting += deliveries
            return state.thread
        }
        thread?.wake()
    }

    func removeAll() -> [AMQPDelivery] {
        state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
    }
}

/// The table of pushes, and the last oplog id of each user.
// Unchecked: it holds the connection to the database, and only the turn of one thread uses it.
private final class PushStore: @unchecked Sendable {
    private static let rowsMax = 500
    private static let limit = Duration.seconds(10)
    private static let table = """
        CREATE TABLE IF NOT EXISTS bare_push (
            user_id text, oplog_id bigint, third_message_id text, payload bytea, PRIMARY KEY (user_id, oplog_id))
        """
    private static let insert = """
        INSERT INTO bare_push (user_id, oplog_id, third_message_id, payload)
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bytea[])
        """

    private let client: AMQPClient
    private let connection: PostgresConnection
    private let wasted: Duration
    private let logger: Logger
    private var lastIDs: [String: Int64] = [:]

    init(client: AMQPClient, database: PostgresConfiguration, wasted: Duration, logger: Logger) {
        self.client = client
        connection = PostgresConnection(configuration: database, logger: logger) { connection throws(PostgresError) in
            try connection.execute(script: Self.table, within: Self.limit)
        }
        self.wasted = wasted
        self.logger = logger
    }

    /// Stores the pushes of deliveries and passes them on. Acknowledges the deliveries after the last commit.
    func store(_ deliveries: [AMQPDelivery]) {
        var pushes: [(push: PushRecord, replyTo: String)] = []
        for delivery in deliveries {
            guard let records = PushRecord.all(in: delivery.body), let replyTo = delivery.replyTo else {
                logger.error("dropped a body that could not be decoded")
                continue
            }
            pushes += records.map { ($0, replyTo) }
        }
        for start in stride(from: 0, to: pushes.count, by: Self.rowsMax) {
            store(pushes[start..<min(start + Self.rowsMax, pushes.count)])
        }
        if !deliveries.isEmpty { client.acknowledge(deliveries, as: .accepted) }
    }

    private func store(_ pushes: ArraySlice<(push: PushRecord, replyTo: String)>) {
        let ids = pushes.map { number($0.push.user) }
        let isStored = insert(pushes.map(\.push), ids)
        waste(pushes.count)
        client.batched {
            for ((push, replyTo), id) in zip(pushes, ids) {
                if isStored {
                    let notice = NoticeRecord(user: push.user, oplogID: id, payload: push.payload)
                    send(notice.body, on: ChainQueue.notices.route())
                }
                let outcome = StoredRecord(correlation: push.correlation, oplogID: isStored ? id : 0)
                send(outcome.body, on: ChainQueue.reply(to: replyTo))
            }
        }
    }

    private func number(_ user: String) -> Int64 {
        lastIDs[user, default: 0] += 1
        return lastIDs[user, default: 0]
    }

    private func insert(_ pushes: [PushRecord], _ ids: [Int64]) -> Bool {
        let statement = PostgresStatement(
            Self.insert,
            [
                .textArray(pushes.map(\.user)), .int64Array(ids), .textArray(pushes.map(\.thirdMessageID)),
                .bytesArray(pushes.map(\.payload)),
            ])
        do throws(PostgresError) {
            _ = try connection.run(statement, within: Self.limit)
            return true
        } catch {
            logger.error("pushes were not stored", metadata: ["error": "\(error)"])
            return false
        }
    }

    /// A lost message fails the load run, so it needs no other handling.
    private func send(_ body: [UInt8], on route: AMQPRoute) {
        do throws(AMQPError) {
            try client.send(body, on: route)
        } catch {
            logger.error("a message was dropped", metadata: ["error": "\(error)"])
        }
    }

    /// Uses processor time of this thread, so that a comparison can be tested with a slowdown of known size.
    private func waste(_ pushes: Int) {
        guard wasted > .zero else { return }
        let end = Self.used + wasted * pushes
        while Self.used < end {}
    }

    /// Processor time of this thread.
    private static var used: Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
