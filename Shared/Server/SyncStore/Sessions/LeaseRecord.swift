package import PostgreSQL

/// The gateways' leases on record. A lease stays on record until a writer has seen by its own clock that it has ended,
/// so a jump of the database's clock does not end it. A crash of the server empties the record; then gateways may hold
/// leases that are not in it. A lease that a new one of the same gateway id has replaced stays on record until its end
/// too: the process that had it may be alive (D17).
package struct LeaseRecord: Hashable, Sendable {
    /// One lease as of one renewal.
    package struct Lease: Hashable, Sendable {
        package var gatewayID: String
        package var epoch: Int64
        /// The number of renewals.
        package var renewals: Int64
        /// The version of the control data that the gateway's sessions use.
        package var controlVersion: Int64

        package init(gatewayID: String, epoch: Int64, renewals: Int64, controlVersion: Int64) {
            self.gatewayID = gatewayID
            self.epoch = epoch
            self.renewals = renewals
            self.controlVersion = controlVersion
        }
    }

    /// Changes of the record; each does nothing when another writer was first.
    package enum Change: Hashable, Sendable {
        /// The server has crashed: leases are recorded from now on.
        case open
        /// The record with this id has existed for a lease's length.
        case complete(String)
        /// The lease was not renewed in time.
        case end(Lease)
    }

    /// Different after every crash; nil: not opened since the last crash.
    package var id: String?
    /// The record has every lease that may be held.
    package var isComplete: Bool
    /// In the order of gateway ids, then of epochs.
    package var leases: [Lease]

    package init(id: String?, isComplete: Bool, leases: [Lease]) {
        self.id = id
        self.isComplete = isComplete
        self.leases = leases
    }

    /// The gateways that may hold a lease and are on record. They receive the messages for all gateways.
    package var gatewayIDs: [String] { gatewayIDs { _ in true } }

    /// The gateways with a lease for which the condition holds, each once.
    package func gatewayIDs(where condition: (Lease) -> Bool) -> [String] {
        Set(leases.lazy.filter(condition).map(\.gatewayID)).sorted()
    }

    /// Reads the record.
    package static let read = Query(
        PostgresStatement(
            """
            SELECT b.book_id::text, coalesce(b.is_complete, false), g.gateway_id, g.epoch, g.renewals, g.control_version
            FROM (VALUES (1)) AS one LEFT JOIN lease_book b ON true
            LEFT JOIN (
                SELECT gateway_id, epoch, renewals, control_version FROM gateway
                UNION ALL
                SELECT gateway_id, epoch, renewals, control_version FROM replaced_lease
            ) g ON true
            ORDER BY g.gateway_id, g.epoch
            """)
    ) { rows throws(PostgresError) in
        var record = LeaseRecord(id: nil, isComplete: false, leases: [])
        // Every row has the book; without a gateway there is one row.
        record.leases = try rows.compactDecode { columns throws(PostgresError) -> Lease? in
            record.id = try columns.next()
            record.isComplete = try columns.next()
            guard let gatewayID = try columns.next(String?.self) else { return nil }
            return try Lease(
                gatewayID: gatewayID, epoch: columns.next(), renewals: columns.next(), controlVersion: columns.next())
        }
        return record
    }
}

extension LeaseRecord.Change {
    /// The statement that makes the change.
    package var statement: PostgresStatement {
        switch self {
        case .open: PostgresStatement("INSERT INTO lease_book (is_complete) VALUES (false) ON CONFLICT DO NOTHING")
        case .complete(let id):
            PostgresStatement("UPDATE lease_book SET is_complete = true WHERE book_id = $1::uuid", [.text(id)])
        case .end(let lease):
            PostgresStatement(
                """
                WITH replaced AS (DELETE FROM replaced_lease WHERE epoch = $2 AND renewals = $3)
                DELETE FROM gateway WHERE gateway_id = $1 AND epoch = $2 AND renewals = $3
                """,
                [.text(lease.gatewayID), .int64(lease.epoch), .int64(lease.renewals)])
        }
    }
}
