import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

// Many rows, and the number of rows that a statement reads.
extension TestDatabase {
    /// Raises the owner's time limit of statements: those that make many rows are slow beside other tests.
    func permitSlowStatements() throws { try execute("SET statement_timeout = '10min'") }

    /// Stores oplogs with these ids and the payload `x`.
    ///
    /// - Parameters:
    ///   - validity: from now, as a PostgreSQL interval.
    ///   - analyzes: analyzes the table, so that every statement is planned anew.
    func fill(
        _ channelID: Int64, from first: Int, to last: Int, validity: String = "1 day", analyzes: Bool = true
    ) throws {
        try permitSlowStatements()
        try execute(
            """
            INSERT INTO oplog SELECT \(channelID), n, 'k' || n, n, 'x', false, 0, '', '', 0, 10000,
                now() + interval '\(validity)', now() FROM generate_series(\(first), \(last)) n;
            UPDATE channel SET head = \(last) WHERE channel_id = \(channelID)
            """)
        if analyzes { try execute("ANALYZE oplog") }
    }

    /// The number of rows of a table, and of entries of its indexes, that were read so far by every connection that has
    /// run `Self.flushCounts` since.
    func rowsRead(from table: String) throws -> Int {
        let counts = try rows(
            """
            SELECT (seq_tup_read + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = '\(table)'))::text
            FROM pg_stat_user_tables WHERE relname = '\(table)'
            """, columns: 1)
        return counts[0][0].flatMap { Int($0) } ?? -1
    }

    /// The same with those that the writer's connection has read by now.
    func rowsReadByNow(from table: String) throws -> Int {
        try run(Self.flushCounts)
        return try rowsRead(from: table)
    }

    /// Adds sessions of the devices and users `d1`, `d2`, … on a gateway.
    func addSessions(_ count: Int, on gatewayID: String, _ lease: Int64) throws {
        try execute(
            """
            INSERT INTO device_session (
                instance_id, device_id, store_id, device_connection, user_id, gateway_id, gateway_epoch,
                connection_number, registration_number, connection_epoch, operating_system, app_version, slot,
                is_foreground, verdict_until, state_number, suspended)
            SELECT 'app', 'd' || n, 's', 1, 'd' || n, '\(gatewayID)', \(lease), 1, 1, 1, 1, '', 0, true, now(), 1, '{}'
            FROM generate_series(1, \(count)) n
            """)
    }

    static let flushCounts = Query(PostgresStatement("SELECT pg_stat_force_next_flush()")) { _ in }

    /// The number of oplog rows that a statement reads, as PostgreSQL counts them, with those that a filter drops.
    func oplogsRead(by statement: PostgresStatement) throws -> Int {
        // The plan of every process of the service.
        try executeAsWriter("SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off")
        let explain = PostgresStatement("EXPLAIN (ANALYZE, TIMING OFF) " + statement.sql, statement.parameters)
        let plan = try run([explain])[0].get().decode(String.self)
        #expect(plan.contains { $0.contains("Scan") && $0.contains(" on oplog") })
        // The number of runs of the plan node on this line; 0 when it does not read oplogs.
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
