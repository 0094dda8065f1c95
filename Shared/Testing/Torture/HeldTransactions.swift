import ConnectionThread
import Foundation
import PostgreSQL
import ToolSupport

/// Open transactions that hold locks or snapshots for a round. Their connections bypass the proxies.
actor HeldTransactions {
    /// Time limit of a statement. The database can be about to restart.
    private static let limit = Duration.seconds(10)
    private static let attempts = 30

    private let thread = ConnectionThread(name: "faults")
    private var held: [FaultSchedule.Planned: PostgresConnection] = [:]

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Locks rows of channels that receive batches.
    func lockChannels(of instance: String, _ users: [Int], _ fault: FaultSchedule.Planned, in file: String) throws {
        let targets = users.map { "'user-\($0)'" }.joined(separator: ", ")
        try hold(
            """
            BEGIN; SELECT 1 FROM channel
            WHERE instance_id = '\(instance)' AND kind = 0 AND target IN (\(targets)) FOR UPDATE
            """, fault, in: file)
    }

    /// Drops the farthest partition, which is empty, so that maintenance must create it. Then takes the lock of a dump.
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
            for name in try farthest.decode(String.self) {
                try connection.execute(script: "SET lock_timeout = '2s'", within: Self.limit)
                try connection.execute(script: "DROP TABLE \(name)", within: Self.limit)
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

    /// Makes commits wait for a standby of this name, which does not exist. An empty name ends the wait.
    ///
    /// With an empty name the call is repeated, because the database can be unavailable while it heals.
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

    /// Closes the connection of a fault.
    func release(_ fault: FaultSchedule.Planned) { held.removeValue(forKey: fault)?.close() }

    /// Closes all connections.
    func stop() {
        for connection in held.values { connection.close() }
        held = [:]
        thread.stop()
    }
}
