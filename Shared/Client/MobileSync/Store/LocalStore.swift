import DeviceProtocol
import Foundation
import GRDB
import SyncModel

/// The received data of a client in one SQLite file. Oplogs and sync points change in one transaction (K8).
///
/// An oplog is stored, handed out, confirmed by the app, and then kept as history until space is needed. The server
/// does not send an acknowledged oplog again, so the oplog must survive a power failure: `synchronous=FULL` costs one
/// flush for each push frame. The store is not thread-safe; the engine owns it.
final class LocalStore {
    let file: LocalStoreFile
    let clock: ServiceClock
    let channels: LocalChannels
    /// The identity and the settings of the device.
    let device: LocalDevice
    let space: StoreSpace
    let oplogs: LocalOplogs
    /// The confirmations, resends and dead letters that the gateway has not recorded.
    let unreported: UnreportedOplogs
    let subscriptions: LocalSubscriptions
    let recoveries: LocalRecoveries
    let parameters: LocalParameters
    let logins: LocalLogins
    /// The operations of the users and their results.
    let outbox: OperationOutbox

    /// Opens or creates the store.
    ///
    /// - Parameters:
    ///   - deviceSecret: the secret of a new store; nil creates one.
    ///   - key: the key for payloads; nil stores them in plain form.
    ///   - limit: the largest size in bytes.
    ///   - clock: the device's wall clock.
    ///   - now: the device's steady clock.
    ///   - makeStoreID: creates the id of a new store.
    /// - Throws: `SyncError`: `store` when the file cannot be used, `storeInUse` when another process or client uses
    ///   it, `foreignStore` when it belongs to another instance or device, `storeKey` when it was encrypted with
    ///   another key.
    init(
        path: String, instanceID: String, deviceID: String, deviceSecret: [UInt8]? = nil, key: [UInt8]? = nil,
        limit: Int = 100_000_000,
        clock: @escaping @Sendable () -> WallTime = SyncClientConfiguration.systemClock,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        makeStoreID: () -> String = LocalStore.makeID
    ) throws(SyncError) {
        let cipher = try key.map { key throws(SyncError) in try PayloadCipher(key: key) }
        file = try LocalStoreFile(path: path, instanceID: instanceID, deviceID: deviceID, makeStoreID: makeStoreID)
        self.clock = ServiceClock(file: file, deviceClock: clock, now: now)
        channels = LocalChannels(file: file)
        device = LocalDevice(
            file: file, channels: channels, named: LocalIdentity(deviceID: deviceID, secret: deviceSecret ?? []))
        space = StoreSpace(file: file, channels: channels, limit: limit)
        oplogs = LocalOplogs(file: file, channels: channels, clock: self.clock, space: space)
        unreported = UnreportedOplogs(file: file, channels: channels)
        subscriptions = LocalSubscriptions(file: file, channels: channels, oplogs: oplogs)
        recoveries = LocalRecoveries(file: file, channels: channels, oplogs: oplogs)
        parameters = LocalParameters(file: file)
        logins = LocalLogins(file: file)
        outbox = OperationOutbox(database: file.database, lock: file.lock, limit: limit, clock: clock)
        try use(cipher)
        try load()
        try file.recordVersion()
        file.reload = { [weak self] () throws(SyncError) in try self?.load() }
    }

    /// Returns a random id of 32 hexadecimal digits.
    static func makeID() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let digits = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// Reads the values that are cached in memory.
    private func load() throws(SyncError) {
        try device.load()
        try channels.load()
        try subscriptions.load()
        try clock.load()
    }

    /// Holds the lock again after a run has ended. When another client has changed the store since then, reads it again
    /// and starts over, as a new client does.
    ///
    /// - Returns: the result of `startOver()`; nil when no other client has changed the store.
    /// - Throws: `SyncError`: `storeInUse` when another client holds the lock, `storeKey` when another client has
    ///   changed the key, `store`.
    func resume() throws(SyncError) -> [Int64]? {
        try file.resume { () throws(SyncError) in try startOver() }
    }

    /// Prepares the store after it was opened: unconfirmed oplogs wait again, and old operations are deleted.
    ///
    /// - Returns: the rows of the channels with waiting oplogs.
    func startOver() throws(SyncError) -> [Int64] {
        try outbox.forgetOld()
        return try oplogs.startOver()
    }

    // MARK: Receiving

    /// Stores the new data of a push frame in one transaction: all of it, or nothing when the store is full.
    ///
    /// - Parameters:
    ///   - batches: batches of known kinds. User channels belong to `userID`.
    ///   - bindNumber: the bind number for acknowledgements of user channels.
    /// - Throws: `SyncError.store`; then nothing is stored, and nothing may be acknowledged.
    func store(
        _ batches: [Mss_Device_V1_ChannelBatch], userID: String?, bindNumber: UInt32
    ) throws(SyncError) -> StoreOutcome {
        guard try space.free(for: StoreSpace.bytes(of: batches.lazy.flatMap(\.entries))) else {
            var outcome = StoreOutcome()
            outcome.isFull = true
            return outcome
        }
        var changed: [LocalChannel.Key: LocalChannel] = [:]
        var outcome = StoreOutcome()
        try file.change("storing a push") { db in
            for batch in batches {
                guard let kind = ChannelKind(wire: batch.kind) else { continue }
                let key = LocalChannel.Key(
                    kind: kind, userID: kind.needsUser ? userID ?? "" : "", bizType: batch.bizType)
                var channel = try changed[key] ?? channels.channel(key, in: db)
                if batch.reread != 0 {
                    try applyReread(batch, to: channel, outcome: &outcome, in: db)
                } else {
                    try apply(batch, to: &channel, bindNumber: bindNumber, outcome: &outcome, in: db)
                }
                changed[key] = channel
            }
        }
        for channel in changed.values { channels.remember(channel) }
        return outcome
    }

    private func apply(
        _ batch: Mss_Device_V1_ChannelBatch, to channel: inout LocalChannel, bindNumber: UInt32,
        outcome: inout StoreOutcome, in db: Database
    ) throws {
        let fit = BatchFit(position: channel.position, after: OplogID(batch.after), upto: OplogID(batch.upto))
        switch fit {
        case .gap:
            outcome.foundGap = true
            return
        case .known:
            break
        case .applies:
            for entry in batch.entries
            where entry.oplogID > channel.position.value && entry.oplogID <= batch.upto {
                if channel.key.isOfResults {
                    try storeResults(from: entry, of: channel, outcome: &outcome, in: db)
                    continue
                }
                guard try oplogs.dropRecalled(by: entry, of: channel, in: db) else { continue }
                // A re-read may have brought the oplog before, and the app may have confirmed it. A history row was
                // only for lists.
                let isAgain = entry.oplogID <= batch.againUpto
                outcome.isRolledBack = outcome.isRolledBack || isAgain
                try oplogs.insert(entry, into: channel, as: isAgain ? .again : .push, in: db)
                outcome.filledChannels.insert(channel.row)
            }
            channel.range.pushed(
                after: channel.position, upto: OplogID(batch.upto), discarded: OplogID(batch.passedOverUpto))
            channel.position = OplogID(batch.upto)
            try channels.update(channel, in: db)
        }
        outcome.acknowledge(channel, bindNumber: bindNumber)
    }

    /// Stores the entries of a re-read as new, except those that the app has confirmed. No sync point moves.
    private func applyReread(
        _ batch: Mss_Device_V1_ChannelBatch, to channel: LocalChannel, outcome: inout StoreOutcome, in db: Database
    ) throws {
        outcome.rereads.append(batch.reread)
        try db.cachedStatement(sql: "INSERT OR IGNORE INTO reread VALUES (?)")
            .execute(arguments: [Int64(bitPattern: batch.reread)])
        guard db.changesCount > 0 else { return }
        for entry in batch.entries {
            if channel.key.isOfResults {
                try storeResults(from: entry, of: channel, outcome: &outcome, in: db)
                continue
            }
            guard try oplogs.dropRecalled(by: entry, of: channel, in: db) else { continue }
            try oplogs.insert(entry, into: channel, as: batch.newlyMatching ? .newlyMatching : .reread, in: db)
            outcome.filledChannels.insert(channel.row)
        }
    }

    /// Stores the results of operations in an oplog, in the transaction that stores the oplog. The client reads these
    /// oplogs itself, and the app reads the results from the outbox. Known and unreadable results are ignored.
    private func storeResults(
        from entry: Mss_Device_V1_Entry, of channel: LocalChannel, outcome: inout StoreOutcome, in db: Database
    ) throws {
        for result in ResultPayload.results(in: [UInt8](entry.payload)) where try outbox.store(result, in: db) {
            outcome.hasResults = true
        }
        try oplogs.insertConfirmed(entry, into: channel, in: db)
        outcome.hasReports = true
    }

    // MARK: Encryption

    /// Sets the key of the store. A store without a key is encrypted now.
    ///
    /// - Throws: `SyncError.storeKey` when the store was encrypted with another key, or when the key is missing.
    private func use(_ cipher: PayloadCipher?) throws(SyncError) {
        let check = try file.access("reading the store's key") { db in
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
            file.cipher = cipher
            outbox.use(cipher)
        }
    }

    /// Encrypts all payloads with another key, in one transaction. A nil value removes the encryption.
    ///
    /// - Throws: `SyncError.store`; then the previous key stays in force.
    func changeCipher(to new: PayloadCipher?) throws(SyncError) {
        let old = file.cipher
        try file.access("changing the store's key") { db in
            // The previous payloads must not stay in free pages.
            try db.execute(sql: "PRAGMA secure_delete = ON")
            defer { try? db.execute(sql: "PRAGMA secure_delete = OFF") }
            try db.inTransaction(.immediate) {
                try LocalOplogs.rewrite(db, from: old, to: new)
                try OperationOutbox.rewrite(db, from: old, to: new)
                try LocalDevice.rewrite(db, from: old, to: new)
                try db.execute(sql: "UPDATE store SET key_check = ?", arguments: [try new?.makeCheck()])
                return .commit
            }
            // From here on the file has the new key, also when the cleaning below fails.
            file.cipher = new
            outbox.use(new)
            // Free pages and the write-ahead log can still contain plain payloads. When the disk has no space for the
            // copy, later writes overwrite them.
            if old == nil { try? db.execute(sql: "VACUUM") }
            try? db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }
}
