import ConnectionThread
import Foundation
import PostgreSQL

/// Transactions of a round that hold something at the database, on connections of their own without a proxy.
actor HeldTransactions {
    /// How long a statement may take; the database may just be coming back.
    private static let limit = Duration.seconds(10)
    private static let attempts = 30

    private let thread = ConnectionThread(name: "faults")
    private var held: [FaultSchedule.Planned: PostgresConnection] = [:]

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Holds the rows of channels that batches are pushed to.
    func lockChannels(of instance: String, _ users: [Int], _ fault: FaultSchedule.Planned, in file: String) throws {
        let targets = users.map { "'user-\($0)'" }.joined(separator: ", ")
        try hold(
            """
            BEGIN; SELECT 1 FROM channel
            WHERE instance_id = '\(instance)' AND kind = 0 AND target IN (\(targets)) FOR UPDATE
            """, fault, in: file)
    }

    /// Drops the farthest partition, which is empty, so that one has to be made, and holds the lock that a dump takes.
    func lockOplog(_ fault: FaultSchedule.Planned, in file: String) throws {
        let connection = try ToolSettings.database(file: file)
        do {
            let farthest = try connection.run(
                PostgresStatement(
                    """
                    SELECT c.relname::text FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid
                    WHERE i.inhparent = 'oplog'::regclass AND to_date(substr(c.relname, 7), 'YYYYMMDD') > now()
                    ORDER BY 1 DESC LIMIT 1
                    """, []), within: Self.limit)
            for row in farthest {
                try connection.execute(script: "SET lock_timeout = '2s'", within: Self.limit)
                try connection.execute(script: "DROP TABLE \(row.text(0))", within: Self.limit)
            }
            try connection.execute(script: "BEGIN; LOCK TABLE oplog IN ACCESS SHARE MODE", within: Self.limit)
        } catch {
            connection.close()
            throw error
        }
        held[fault] = connection
    }

    /// Holds a snapshot and a transaction id.
    func idle(_ fault: FaultSchedule.Planned, in file: String) throws {
        try hold(
            """
            BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id();
            SELECT 1 FROM oplog LIMIT 1; SELECT 1 FROM channel LIMIT 1
            """, fault, in: file)
    }

    private func hold(_ script: String, _ fault: FaultSchedule.Planned, in file: String) throws {
        let connection = try ToolSettings.database(file: file)
        do {
            try connection.execute(script: script, within: Self.limit)
        } catch {
            connection.close()
            throw error
        }
        held[fault] = connection
    }

    /// Has commits wait for a standby of this name, which is not there; empty: for none.
    ///
    /// The database may be away while it heals, so this is tried for some time.
    func setStandby(_ name: String, in file: String) async throws {
        for attempt in 1... {
            let connection = try ToolSettings.database(file: file)
            defer { connection.close() }
            do {
                try connection.execute(
                    script: "ALTER SYSTEM SET synchronous_standby_names = '\(name)'", within: Self.limit)
                return try connection.execute(script: "SELECT pg_reload_conf()", within: Self.limit)
            } catch {
                guard attempt < Self.attempts, name.isEmpty else { throw error }
            }
            try await Task.sleep(for: .seconds(1))
        }
    }

    /// Ends what a fault holds.
    func release(_ fault: FaultSchedule.Planned) { held.removeValue(forKey: fault)?.close() }

    /// Ends everything.
    func stop() {
        for connection in held.values { connection.close() }
        held = [:]
        thread.stop()
    }
}
