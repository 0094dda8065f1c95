import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

// Many oplogs, and how many of them a statement reads.
extension TestDatabase {
    /// Stores oplogs of these ids, with `x` as the payload.
    ///
    /// - Parameter validity: how long they are valid from now, as PostgreSQL reads intervals.
    func fill(_ channelID: Int64, from first: Int, to last: Int, validity: String = "1 day") throws {
        // Beside all the other tests that is slow.
        try execute("SET statement_timeout = '10min'")
        try execute(
            """
            INSERT INTO oplog SELECT \(channelID), n, 'k' || n, n, 'x', false, 0, '', '', 0, 10000,
                now() + interval '\(validity)', now() FROM generate_series(\(first), \(last)) n;
            UPDATE channel SET head = \(last) WHERE channel_id = \(channelID); ANALYZE oplog
            """)
    }

    /// Rows of a table and entries of its indexes that were read so far, by every connection that has run
    /// `Self.flushCounts` since.
    func rowsRead(from table: String) throws -> Int {
        let counts = try rows(
            """
            SELECT (seq_tup_read + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = '\(table)'))::text
            FROM pg_stat_user_tables WHERE relname = '\(table)'
            """, columns: 1)
        return counts[0][0].flatMap { Int($0) } ?? -1
    }

    static let flushCounts = Query(PostgresStatement("SELECT pg_stat_force_next_flush()")) { _ in }

    /// Rows of oplogs that a statement reads, as PostgreSQL counts them: those that a filter drops included.
    func oplogsRead(by statement: PostgresStatement) throws -> Int {
        // As every process of the service plans.
        try executeAsWriter("SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off")
        let explain = PostgresStatement("EXPLAIN (ANALYZE, TIMING OFF) " + statement.sql, statement.parameters)
        let plan = try run([explain])[0].get().map { $0.text(0) }
        #expect(plan.contains { $0.contains("Scan") && $0.contains(" on oplog") })
        // How often the part of the plan runs that the line is of; 0: it does not read oplogs.
        var (rows, runs) = (0, 0)
        for line in plan {
            func number(after words: String) -> Int? {
                line.split(separator: words).dropFirst().first.flatMap { Int($0.prefix { $0.isNumber }) }
            }
            if line.contains("actual rows=") { runs = line.contains(" on oplog") ? number(after: "loops=") ?? 1 : 0 }
            rows += runs * (number(after: "actual rows=") ?? number(after: "Rows Removed by Filter: ") ?? 0)
        }
        return rows
    }
}

extension OplogStore.Append {
    /// A push of `x` to user u of the instance `app`.
    static func toUser(_ key: String, _ bizType: String) -> OplogStore.Append {
        OplogStore.Append(
            address: ChannelAddress(
                target: TargetAddress(instanceID: InstanceID("app"), kind: .user, target: "u"),
                bizType: BizType(bizType)),
            oplog: Oplog(
                id: .zero, thirdMessageID: ThirdMessageID(key), payload: [120], isBinary: false,
                targeting: Targeting(), validUntil: WallTime(milliseconds: 0), createdAt: WallTime(milliseconds: 0),
                isPersistent: true))
    }
}
