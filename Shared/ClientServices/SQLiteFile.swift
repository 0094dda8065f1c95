import Foundation
import GRDB

/// Opens the SQLite files of this module, all in the same way.
enum SQLiteFile {
    /// Opens or creates a file; one that SQLite cannot read is moved aside (`.damaged`), and a new one begins.
    ///
    /// - Parameters:
    ///   - isDurable: a commit survives a power cut; otherwise the end of the process only, and costs no flush.
    ///   - schema: the tables, as of the only version there is so far.
    /// - Returns: the database, and whether it replaced a damaged one.
    /// - Throws: `ClientServiceError.store`.
    static func open(
        _ url: URL, isDurable: Bool, schema: String
    ) throws(ClientServiceError) -> (database: DatabaseQueue, replacedDamaged: Bool) {
        let path = url.path
        do {
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            do {
                return (try openReadable(path, isDurable: isDurable, schema: schema), false)
            } catch let error as DatabaseError
                where error.resultCode == .SQLITE_CORRUPT || error.resultCode == .SQLITE_NOTADB
            {
                try moveAside(path)
                return (try openReadable(path, isDurable: isDurable, schema: schema), true)
            }
        } catch {
            throw error as? ClientServiceError
                ?? ClientServiceError(.store, "\(path) cannot be opened (\(error)); check folder, space and rights")
        }
    }

    private static func moveAside(_ path: String) throws {
        let aside = path + ".damaged"
        for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
            try? FileManager.default.removeItem(atPath: aside + suffix)
            try FileManager.default.moveItem(atPath: path + suffix, toPath: aside + suffix)
        }
    }

    private static func openReadable(_ path: String, isDurable: Bool, schema: String) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.journalMode = .wal
        configuration.busyMode = .timeout(5)
        configuration.label = "client-services"
        let database = try DatabaseQueue(path: path, configuration: configuration)
        try database.writeWithoutTransaction { db in
            // After the journal mode, which sets NORMAL.
            if isDurable { try db.execute(sql: "PRAGMA synchronous = FULL") }
            guard try String.fetchOne(db, sql: "PRAGMA quick_check(1)") == "ok" else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "quick_check found damage")
            }
        }
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { db in try db.execute(sql: schema) }
        guard try !database.read(migrator.hasBeenSuperseded) else {
            throw ClientServiceError(
                .store, "\(path) was written by a newer version of this library; update the app")
        }
        try migrator.migrate(database)
        return database
    }
}
