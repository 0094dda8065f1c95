import PostgreSQL
import ServiceKit
import SyncModel
import SyncStore

/// What one writer has seen of the leases on record, and since when, by its own clock; pure.
struct LeaseWatch {
    /// A lease that was given before the book was opened, or before this renewal was seen, is over after this.
    private static let lease = Limits.gatewayLease

    private var book: (id: String, since: ContinuousClock.Instant)?
    private var leases: [LeaseBook.Lease: ContinuousClock.Instant] = [:]

    /// Takes a look.
    ///
    /// - Parameters:
    ///   - asked: before it was read: what is judged is judged as of then.
    ///   - answered: after it was read: what is in it has been so since then at the latest.
    /// - Returns: what is to be changed now.
    mutating func changes(
        in seen: LeaseBook, asked: ContinuousClock.Instant, answered: ContinuousClock.Instant
    ) -> [LeaseBook.Change] {
        leases = Dictionary(uniqueKeysWithValues: seen.leases.map { ($0, leases[$0] ?? answered) })
        let over = seen.leases.filter { lease in leases[lease].map { asked >= $0 + Self.lease } ?? false }
        guard let id = seen.id else { return [.open] + over.map { .end($0) } }
        if book?.id != id { book = (id, answered) }
        #if KNOWN_BAD
            let isOld = KnownBad.leaseBookCompleteAtOnce.isOn || book.map { asked >= $0.since + Self.lease } ?? false
        #else
            let isOld = book.map { asked >= $0.since + Self.lease } ?? false
        #endif
        return (isOld && !seen.isComplete ? [.complete(id)] : []) + over.map { .end($0) }
    }
}

extension LeaseWatch {
    /// Brings the record of leases up to date; called once a second by every writer.
    mutating func tick(in store: some DeliveryStore, clock: ProcessClock) throws(PostgresError) {
        let asked = clock.now()
        let book = try store.leaseBook()
        let changes = changes(in: book, asked: asked, answered: clock.now())
        if !changes.isEmpty { try store.change(changes) }
    }
}
