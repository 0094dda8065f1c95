import PostgreSQL
import ServiceKit
import SyncModel
import SyncStore

/// Decides from repeated reads of the lease record which leases have expired. It uses the writer's steady clock; pure.
struct LeaseExpiryTracker {
    /// The duration of a lease. A lease has expired when this writer has seen its latest renewal for that long.
    private static let lease = Limits.gatewayLease

    private var record: (id: String, since: ContinuousClock.Instant)?
    private var leases: [LeaseRecord.Lease: ContinuousClock.Instant] = [:]

    /// Compares the lease record with the earlier reads.
    ///
    /// - Parameters:
    ///   - read: the lease record as it was read now.
    ///   - asked: the time before the read. Expiry is judged as of this time.
    ///   - answered: the time after the read. Every lease in the record has existed since this time at the latest.
    /// - Returns: the changes to write now.
    mutating func changes(
        in read: LeaseRecord, asked: ContinuousClock.Instant, answered: ContinuousClock.Instant
    ) -> [LeaseRecord.Change] {
        leases = Dictionary(uniqueKeysWithValues: read.leases.map { ($0, leases[$0] ?? answered) })
        let over = read.leases.filter { lease in leases[lease].map { asked >= $0 + Self.lease } ?? false }
        guard let id = read.id else { return [.open] + over.map { .end($0) } }
        if record?.id != id { record = (id, answered) }
        let isOld = record.map { asked >= $0.since + Self.lease } ?? false
        return (isOld && !read.isComplete ? [.complete(id)] : []) + over.map { .end($0) }
    }
}

extension LeaseExpiryTracker {
    /// Reads the lease record and writes the changes. Every writer calls this once a second.
    mutating func tick(in store: some DeliveryStore, clock: ProcessClock) throws(PostgresError) {
        let asked = clock.now()
        let record = try store.leaseRecord()
        let changes = changes(in: record, asked: asked, answered: clock.now())
        if !changes.isEmpty { try store.change(changes) }
    }
}
