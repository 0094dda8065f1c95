import Foundation
import GRDB

/// The SQLite file of a local store, for one client at a time. It performs the steps on the database, and finds the
/// changes of other clients. Not thread-safe.
final class LocalStoreFile {
    let database: DatabaseQueue
    /// Limits the file to one client. The lock is held from here on; `SyncClient` releases it at the end of a run.
    let lock: StoreLock
    /// Created with the file: a new store is a new receiver (W7).
    let storeID: String
    /// Whether the file at this path was damaged and was moved aside.
    let replacedDamaged: Bool
    /// Encrypts payloads; nil while they are stored in plain form.
    var cipher: PayloadCipher?
    /// Called after another client has changed the file. It reads the cached values again.
    var reload: () throws(SyncError) -> Void = {}
    /// SQLite's version number of the file. It changes when another connection writes.
    private var dataVersion: Int64 = 0
    /// Whether another client has written to the file since the last start-over in `resume`.
    private var hasOtherClientChanges = false

    /// Opens or creates the file.
    ///
    /// - Parameter makeStoreID: creates the id of a new store.
    /// - Throws: `SyncError`: `store` when the file cannot be used, `storeInUse` when another process or client uses
    ///   it, `foreignStore` when it belongs to another instance or device.
    init(path: String, instanceID: String, deviceID: String, makeStoreID: () -> String) throws(SyncError) {
        lock = try StoreLock(of: path)
        do {
            (database, replacedDamaged) = try SQLiteFile.open(
                path, label: "mobile-sync", migrator: LocalStoreSchema.migrator)
            let owner = try database.write { db in
                try Self.owner(db, or: Owner(storeID: makeStoreID(), instanceID: instanceID, deviceID: deviceID))
            }
            guard owner.instanceID == instanceID, owner.deviceID == deviceID else {
                throw SyncError(
                    .foreignStore,
                    "the store \(path) belongs to device \(owner.deviceID) of \(owner.instanceID); use another path")
            }
            storeID = owner.storeID
        } catch {
            throw error as? SyncError
                ?? SyncError(
                    .store, "the store \(path) cannot be opened (\(error)); check folder, space and access rights")
        }
    }

    // The outbox can outlive the store; it takes the lock for single steps.
    deinit { lock.release() }

    private struct Owner {
        let storeID: String
        let instanceID: String
        let deviceID: String
    }

    private static func owner(_ db: Database, or new: Owner) throws -> Owner {
        if let row = try Row.fetchOne(db, sql: "SELECT store_id, instance_id, device_id FROM store") {
            return Owner(storeID: row[0], instanceID: row[1], deviceID: row[2])
        }
        try db.execute(
            sql: "INSERT INTO store (store_id, instance_id, device_id) VALUES (?, ?, ?)",
            arguments: [new.storeID, new.instanceID, new.deviceID])
        return new
    }

    // MARK: One client at a time

    /// Records that the cached values contain every change of the file up to now.
    func recordVersion() throws(SyncError) { dataVersion = try readDataVersion() }

    /// Holds the lock again after a run has ended.
    ///
    /// - Parameter startOver: called when another client has changed the file since the last start-over.
    /// - Returns: the result of `startOver`; nil when no other client has changed the file.
    /// - Throws: `SyncError`: `storeInUse` when another client holds the lock, `storeKey` when another client has
    ///   changed the key, `store`; and the errors of `startOver`.
    func resume<Value>(startingOver startOver: () throws(SyncError) -> Value) throws(SyncError) -> Value? {
        try lock.hold()
        try refresh()
        guard hasOtherClientChanges else { return nil }
        let value = try startOver()
        hasOtherClientChanges = false
        return value
    }

    /// Reads the cached values again when another client has changed the file.
    private func refresh() throws(SyncError) {
        let former = dataVersion
        // Set before the reads below, because their steps call this method too.
        dataVersion = try readDataVersion()
        guard dataVersion != former else { return }
        do throws(SyncError) {
            try step("checking the store's key") { db in try Self.check(cipher, in: db) }
            try reload()
        } catch {
            dataVersion = former
            throw error
        }
        hasOtherClientChanges = true
    }

    private func readDataVersion() throws(SyncError) -> Int64 {
        try step("reading the state of the file") { db in try Int64.fetchOne(db, sql: "PRAGMA data_version") ?? 0 }
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

    /// Sends a signal after each later commit of this client, until the result is released.
    func observeCommits(_ signals: EventBroadcaster<Void>) -> CommitObserver {
        let observer = CommitObserver(signals: signals)
        database.add(transactionObserver: observer, extent: .observerLifetime)
        return observer
    }

    // MARK: Access

    /// Performs a step on the database. Between runs it takes the lock for this step, and reads changes of other
    /// clients first.
    ///
    /// - Throws: `SyncError`: `store` with the step's name; between runs also `storeInUse` and `storeKey`, as `resume`.
    func access<Value>(_ name: String, _ body: (Database) throws -> Value) throws(SyncError) -> Value {
        let isHeld = try lock.beginStep()
        defer { lock.endStep() }
        if !isHeld { try refresh() }
        return try step(name, body)
    }

    private func step<Value>(_ name: String, _ body: (Database) throws -> Value) throws(SyncError) -> Value {
        do {
            return try database.inDatabase(body)
        } catch {
            throw SyncError(step: name, error)
        }
    }

    /// Performs a step in one transaction.
    func change(_ step: String, _ body: (Database) throws -> Void) throws(SyncError) {
        try access(step) { db in
            try db.inTransaction(.immediate) {
                try body(db)
                return .commit
            }
        }
    }
}
