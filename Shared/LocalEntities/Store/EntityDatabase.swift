import Foundation
import GRDB
import MobileSync
import Synchronization

/// The SQLite file of an entity store: one caller at a time, and its key.
///
/// `synchronous=FULL`: what the app has saved or confirmed must survive a power cut.
final class EntityDatabase: Sendable {
    let schema: EntitySchema
    let tables: [String: EntityTable]
    /// The file was damaged beyond reading; it stands beside the new one, with `.damaged` at the end.
    let replacedDamaged: Bool
    private let database: DatabaseQueue
    private let key: CipherBox
    /// The thread whose turn it is.
    private let holder = Mutex<ObjectIdentifier?>(nil)

    /// The key that counts now; changes only in the database's turn.
    private final class CipherBox: Sendable {
        let cipher = Mutex<StoreCipher?>(nil)
    }

    /// Opens or creates the file.
    ///
    /// - Parameters:
    ///   - userID: whose data it holds; empty: nobody's.
    ///   - key: 32 bytes; nil: attributes are stored as they are.
    ///   - limit: bytes that it may take.
    /// - Throws: `EntityError`: `persistence`, `storeKey`, `foreignStore`, `invalidArgument` for the key's length.
    init(path: String, schema: EntitySchema, userID: String, key: [UInt8]?, limit: Int) throws(EntityError) {
        self.schema = schema
        tables = Dictionary(uniqueKeysWithValues: schema.types.map { ($0.name, EntityTable($0, in: schema)) })
        let cipher = try key.map { key throws(EntityError) in try StoreCipher(entityKey: key) }
        let box = CipherBox()
        self.key = box
        do {
            (database, replacedDamaged) = try SQLiteFile.open(
                path, label: "local-entities", migrator: EntityStoreSchema.migrator
            ) { db in
                db.add(function: QueryCompiler.openFunction { box.cipher.withLock { $0 } })
                let page = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 4_096
                try db.execute(sql: "PRAGMA max_page_count = \(max(1, limit / page))")
            }
        } catch {
            throw EntityError.wrapping(error, "opening the store")
        }
        try claim(for: userID)
        try use(cipher)
        try transaction("bringing the tables to the declaration") { db, cipher in
            try TableReconciliation(db: db, schema: schema, cipher: cipher).run()
        }
    }

    // MARK: Turns

    /// Performs a step in the database's turn, without a transaction.
    ///
    /// - Throws: `EntityError.persistence` with the step's name, also when this thread has the turn already; and what
    ///   the body throws of this type.
    func turn<Value>(
        _ step: String, _ body: (Database, StoreCipher?) throws -> Value
    ) throws(EntityError) -> Value {
        let me = ObjectIdentifier(Thread.current)
        guard holder.withLock({ $0 != me }) else {
            throw EntityError(.persistence, "\(step) inside a transaction: use the transaction's own calls there")
        }
        do {
            return try database.writeWithoutTransaction { db in
                holder.withLock { $0 = ObjectIdentifier(Thread.current) }
                defer { holder.withLock { $0 = nil } }
                return try body(db, key.cipher.withLock { $0 })
            }
        } catch {
            throw EntityError.wrapping(error, step)
        }
    }

    /// The same in one transaction, durable when this returns.
    func transaction<Value>(
        _ step: String, _ body: (Database, StoreCipher?) throws -> Value
    ) throws(EntityError) -> Value {
        try turn(step) { db, cipher in
            var value: Value?
            try db.inTransaction(.immediate) {
                value = try body(db, cipher)
                return .commit
            }
            guard let value else { throw EntityError(.persistence, "\(step) gave nothing") }
            return value
        }
    }

    // MARK: Opening

    private func claim(for userID: String) throws(EntityError) {
        let owner = try transaction("claiming the store") { db, _ in
            if let owner = try String.fetchOne(db, sql: "SELECT user_id FROM store") { return owner }
            try db.execute(sql: "INSERT INTO store (user_id) VALUES (?)", arguments: [userID])
            return userID
        }
        guard owner.utf8.elementsEqual(userID.utf8) else {
            throw EntityError(.foreignStore, "the store holds another user's entities; use another path")
        }
    }

    // MARK: Key

    /// Takes up the key that the store was written with; a store without one is sealed now.
    private func use(_ cipher: StoreCipher?) throws(EntityError) {
        let check = try turn("reading the store's key") { db, _ in
            try Data.fetchOne(db, sql: "SELECT key_check FROM store")
        }
        switch (check, cipher) {
        case (nil, nil): break
        case (nil, let cipher?): try change(to: cipher)
        case (_?, nil):
            throw EntityError(.storeKey, "the store is encrypted: give its encryption key, or use another path")
        case (let check?, let cipher?):
            guard cipher.made(check) else {
                throw EntityError(
                    .storeKey, "the store was encrypted with another key: give that one, or use another path")
            }
            key.cipher.withLock { $0 = cipher }
        }
    }

    /// Seals everything anew with another key, in one transaction; nil: readable for everybody.
    ///
    /// - Throws: `EntityError.persistence`; the former key counts then.
    func change(to new: StoreCipher?) throws(EntityError) {
        try turn("changing the store's key") { db, old in
            // What is written over is not to be found in free pages.
            try db.execute(sql: "PRAGMA secure_delete = ON")
            defer { try? db.execute(sql: "PRAGMA secure_delete = OFF") }
            try db.inTransaction(.immediate) {
                try ColumnRewrite(db: db, from: old, to: new).everything()
                return .commit
            }
            // From here on the file has the new key, whatever becomes of the cleaning: what was deleted earlier is in
            // free pages still, and the log before holds the former form.
            key.cipher.withLock { $0 = new }
            if old == nil { try? db.execute(sql: "VACUUM") }
            try? db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }
}
