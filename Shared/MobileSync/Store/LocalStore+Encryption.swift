import Foundation
import GRDB

/// The store's key.
extension LocalStore {
    /// Takes up the key that the store was written with; a store without one is encrypted now.
    ///
    /// - Throws: `SyncError.storeKey` when it was written with another, or with one and none is given.
    func use(_ cipher: PayloadCipher?) throws(SyncError) {
        let check = try access("reading the store's key") { db in
            try Data.fetchOne(db, sql: "SELECT key_check FROM store")
        }
        switch (check, cipher) {
        case (nil, nil): break
        case (nil, let cipher?): try changeCipher(to: cipher)
        case (_?, nil):
            throw SyncError(.storeKey, "the store is encrypted: give its key as storeKey, or use another path")
        case (let check?, let cipher?):
            guard cipher.made(check) else {
                throw SyncError(
                    .storeKey, "the store was encrypted with another key: give that one, or use another path")
            }
            self.cipher = cipher
            outbox.use(cipher)
        }
    }

    /// Checks that the file still has this key.
    ///
    /// - Throws: `SyncError.storeKey` when another client has changed the key.
    static func check(_ cipher: PayloadCipher?, in db: Database) throws {
        let check = try Data.fetchOne(db, sql: "SELECT key_check FROM store")
        let isSame = if let check { cipher?.made(check) ?? false } else { cipher == nil }
        guard isSame else {
            throw SyncError(.storeKey, "another client has changed the store's key: make a new client with that key")
        }
    }

    /// Writes all payloads anew under another key, in one transaction, or readable for everybody.
    ///
    /// - Throws: `SyncError.store`; the former key counts then.
    func changeCipher(to new: PayloadCipher?) throws(SyncError) {
        let old = cipher
        try access("changing the store's key") { db in
            // What is written over is not to be found in free pages.
            try db.execute(sql: "PRAGMA secure_delete = ON")
            defer { try? db.execute(sql: "PRAGMA secure_delete = OFF") }
            try db.inTransaction(.immediate) {
                try Self.rewrite(db, from: old, to: new)
                return .commit
            }
            // From here on the file has the new key, whatever becomes of the cleaning.
            cipher = new
            outbox.use(new)
            // What was deleted earlier is in free pages still, and the log before holds the former form. Without space
            // for the copy they are written over in the course of time.
            if old == nil { try? db.execute(sql: "VACUUM") }
            try? db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }

    private static func rewrite(_ db: Database, from old: PayloadCipher?, to new: PayloadCipher?) throws {
        let update = try db.makeStatement(sql: "UPDATE oplog SET payload = ? WHERE channel_id = ? AND oplog_id = ?")
        let places = try Row.fetchAll(db, sql: "SELECT channel_id, oplog_id FROM oplog WHERE payload <> x''")
        for place in places {
            let (row, id): (Int64, Int64) = (place[0], place[1])
            let stored = try Data.fetchOne(
                db.cachedStatement(sql: "SELECT payload FROM oplog WHERE channel_id = ? AND oplog_id = ?"),
                arguments: [row, id])
            guard let stored else { continue }
            let payload = try old?.open(stored, channelRow: row, oplogID: id) ?? stored
            let written = try new?.seal(payload, channelRow: row, oplogID: id) ?? payload
            try update.execute(arguments: [written, row, id])
        }
        try OperationOutbox.rewrite(db, from: old, to: new)
        try rewriteSecret(db, from: old, to: new)
        try db.execute(sql: "UPDATE store SET key_check = ?", arguments: [try new?.makeCheck()])
    }
}
