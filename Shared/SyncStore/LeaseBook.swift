package import PostgreSQL

/// The leases of gateways on record. A lease is on record until somebody has seen by his own clock that it has run out:
/// no jump of the database's clock makes one that is held look over. A crash of the server empties the record, and then
/// leases may be held that are not in it.
package struct LeaseBook: Hashable, Sendable {
    /// One lease as of one renewal.
    package struct Lease: Hashable, Sendable {
        package var gatewayID: String
        package var epoch: Int64
        /// How often it was renewed.
        package var renewals: Int64
        /// Of the control data that the gateway's sessions go by.
        package var controlVersion: Int64

        package init(gatewayID: String, epoch: Int64, renewals: Int64, controlVersion: Int64) {
            self.gatewayID = gatewayID
            self.epoch = epoch
            self.renewals = renewals
            self.controlVersion = controlVersion
        }
    }

    /// What brings the record up to date; each does nothing when another writer was first.
    package enum Change: Hashable, Sendable {
        /// The server has crashed: leases are on record from now on.
        case open
        /// The book of this id has stood for a lease's length.
        case complete(String)
        /// The lease has not been renewed in its time.
        case end(Lease)
    }

    /// Another after every crash; nil: not opened since.
    package var id: String?
    /// Every lease that may be held is here.
    package var isComplete: Bool
    /// By gateway id.
    package var leases: [Lease]

    package init(id: String?, isComplete: Bool, leases: [Lease]) {
        self.id = id
        self.isComplete = isComplete
        self.leases = leases
    }

    /// Every gateway that may hold a lease and is on record: who is told of what concerns everybody.
    package var gatewayIDs: [String] { leases.map(\.gatewayID) }

    /// Reads it as it is.
    package static let read = Query(
        PostgresStatement(
            """
            SELECT b.book_id::text, coalesce(b.is_complete, false), g.gateway_id, g.epoch, g.renewals, g.control_version
            FROM (VALUES (1)) AS one LEFT JOIN lease_book b ON true LEFT JOIN gateway g ON true
            ORDER BY g.gateway_id
            """)
    ) { rows in
        LeaseBook(
            id: rows.first.flatMap { $0.isNull(0) ? nil : $0.text(0) }, isComplete: rows.first?.bool(1) ?? false,
            leases: rows.compactMap { row in
                guard !row.isNull(2) else { return nil }
                return Lease(
                    gatewayID: row.text(2), epoch: row.int64(3), renewals: row.int64(4), controlVersion: row.int64(5))
            })
    }
}

extension LeaseBook.Change {
    /// The statement that makes it.
    package var statement: PostgresStatement {
        switch self {
        case .open: PostgresStatement("INSERT INTO lease_book (is_complete) VALUES (false) ON CONFLICT DO NOTHING")
        case .complete(let id):
            PostgresStatement("UPDATE lease_book SET is_complete = true WHERE book_id = $1::uuid", [.text(id)])
        case .end(let lease):
            PostgresStatement(
                "DELETE FROM gateway WHERE gateway_id = $1 AND epoch = $2 AND renewals = $3",
                [.text(lease.gatewayID), .int64(lease.epoch), .int64(lease.renewals)])
        }
    }
}
