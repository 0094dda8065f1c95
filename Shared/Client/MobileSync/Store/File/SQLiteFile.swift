import Foundation
package import GRDB

/// Opens the SQLite files of all client modules in the same way.
package enum SQLiteFile {
    /// The file has migrations that this version does not know. Nothing was changed.
    package struct Superseded: Error, CustomStringConvertible {
        package var description: String { "it was written by a newer version of this library; update the app" }
    }

    /// Opens or creates a file with one connection. A file that SQLite cannot read is moved aside (`.damaged`), and a
    /// new one begins.
    ///
    /// - Parameters:
    ///   - path: the path of the file.
    ///   - label: the name of the database in traces.
    ///   - isDurable: whether a commit survives a power failure. Otherwise it survives only the end of the process, and
    ///     costs no flush.
    ///   - migrator: brings the tables to this version.
    ///   - prepare: called with each new connection before any other use.
    /// - Returns: the database, and whether it replaced a damaged one.
    /// - Throws: `Superseded`, and the errors of SQLite and of the file system.
    package static func open(
        _ path: String, label: String, isDurable: Bool = true, migrator: DatabaseMigrator,
        prepare: @escaping @Sendable (Database) throws -> Void = { _ in }
    ) throws -> (database: DatabaseQueue, replacedDamaged: Bool) {
        try open(path, label: label, isDurable: isDurable, migrator: migrator, prepare: prepare) {
            try DatabaseQueue(path: $0, configuration: $1)
        }
    }

    /// Opens or creates a file with one writer and a pool of readers, which read beside a commit. Otherwise as `open`.
    package static func openPool(
        _ path: String, label: String, isDurable: Bool = true, migrator: DatabaseMigrator,
        prepare: @escaping @Sendable (Database) throws -> Void = { _ in }
    ) throws -> (database: DatabasePool, replacedDamaged: Bool) {
        try open(path, label: label, isDurable: isDurable, migrator: migrator, prepare: prepare) {
            try DatabasePool(path: $0, configuration: $1)
        }
    }

    private static func open<Writer: DatabaseWriter>(
        _ path: String, label: String, isDurable: Bool, migrator: DatabaseMigrator,
        prepare: @escaping @Sendable (Database) throws -> Void, connect: (String, Configuration) throws -> Writer
    ) throws -> (database: Writer, replacedDamaged: Bool) {
        func attempt() throws -> Writer {
            try openReadable(
                path, label: label, isDurable: isDurable, migrator: migrator, prepare: prepare, connect: connect)
        }
        do {
            return (try attempt(), false)
        } catch let error as DatabaseError
            where error.resultCode == .SQLITE_CORRUPT || error.resultCode == .SQLITE_NOTADB
        {
            try moveAside(path)
            return (try attempt(), true)
        }
    }

    /// The number of damaged files at this path that were moved aside, over all starts of the app.
    package static func replacements(of path: String) -> Int {
        (try? String(contentsOfFile: path + countSuffix, encoding: .utf8)).flatMap { Int($0) } ?? 0
    }

    /// The count is in a file of its own, because the database is damaged.
    private static let countSuffix = ".replacements"

    private static func moveAside(_ path: String) throws {
        let aside = path + ".damaged"
        for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
            try? FileManager.default.removeItem(atPath: aside + suffix)
            try FileManager.default.moveItem(atPath: path + suffix, toPath: aside + suffix)
        }
        // A new store matters more than its count.
        try? "\(replacements(of: path) + 1)".write(toFile: path + countSuffix, atomically: true, encoding: .utf8)
    }

    private static func openReadable<Writer: DatabaseWriter>(
        _ path: String, label: String, isDurable: Bool, migrator: DatabaseMigrator,
        prepare: @escaping @Sendable (Database) throws -> Void, connect: (String, Configuration) throws -> Writer
    ) throws -> Writer {
        var configuration = Configuration()
        configuration.journalMode = .wal
        configuration.busyMode = .timeout(5)
        configuration.label = label
        configuration.prepareDatabase(prepare)
        let database = try connect(path, configuration)
        try database.writeWithoutTransaction { db in
            // After the journal mode, which sets NORMAL.
            if isDurable { try db.execute(sql: "PRAGMA synchronous = FULL") }
            guard try String.fetchOne(db, sql: "PRAGMA quick_check(1)") == "ok" else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "quick_check found damage")
            }
        }
        guard try !database.read(migrator.hasBeenSuperseded) else { throw Superseded() }
        try migrator.migrate(database)
        return database
    }
}
