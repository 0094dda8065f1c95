import DeviceProtocol
import Foundation
import GRDB
import SwiftProtobuf
import SyncModel

/// What a client has received, in one SQLite file: oplogs and sync points change in one transaction (spec K8).
///
/// An oplog is stored, handed out, confirmed by the app, and then kept as history until room is needed.
/// `synchronous=FULL`: a stored oplog is acknowledged and never sent again, so it must survive a power cut, and the
/// cost is one flush per push frame, not per oplog. Not thread-safe; it belongs to the engine.
final class LocalStore {
    let database: DatabaseQueue
    /// Bytes that it may take.
    let limit: Int
    /// The device's.
    let clock: @Sendable () -> WallTime
    /// The device's clock that nobody can set.
    private let now: @Sendable () -> ContinuousClock.Instant
    var cipher: PayloadCipher?
    private var channels: [LocalChannel.Key: LocalChannel] = [:]
    private var channelsByRow: [Int64: LocalChannel.Key] = [:]
    /// Business types that the app does not take now.
    var suspended: Set<String> = []
    /// The service's time as the last connection of this process was told it, and when.
    private var toldTime: (time: WallTime, at: ContinuousClock.Instant)?
    /// What to add to the device's clock to have the service's, as of the last connection; nil before the first. It
    /// serves until a connection of this process is told the service's time.
    private var clockOffset: Duration?
    /// What to add to the device's clock to have that of the gateway that refused a signature last; nil before the
    /// first refusal. A gateway checks signatures by its own machine's clock, which is not the one that validity goes
    /// by.
    private var signingOffset: Duration?
    /// Made with the file: a new store is a new receiver (spec §1).
    let storeID: String
    /// Who the device is for the service.
    var identity: LocalIdentity
    /// The file at this path was damaged; it stands beside this new one.
    let replacedDamaged: Bool
    /// What the users did, and what became of it.
    let outbox: OperationOutbox
    /// Keeps the file to one client. It is held from here on; `ClientEngine` releases it when a run ends.
    let lock: StoreLock
    /// The device id that the app gave.
    private let namedDeviceID: String
    /// SQLite's number for the state of the file: it changes when another connection has written.
    private var dataVersion: Int64 = 0
    /// Another client has written to the file since `resume()` last started over.
    private var hasForeignChanges = false

    /// Opens or creates the store.
    ///
    /// - Parameters:
    ///   - key: for payloads; nil: they are stored as they are.
    ///   - limit: bytes that it may take.
    ///   - makeStoreID: names a store that is new.
    /// - Throws: `SyncError`: `store` when the file cannot be used, `storeInUse` when another process or client uses
    /// it, `foreignStore` when it is another's, `storeKey` when it was encrypted with another key.
    init(
        path: String, instanceID: String, deviceID: String, key: [UInt8]? = nil, limit: Int = 100_000_000,
        clock: @escaping @Sendable () -> WallTime = SyncClientConfiguration.systemClock,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        makeStoreID: () -> String = LocalStore.makeID
    ) throws(SyncError) {
        let cipher = try key.map { key throws(SyncError) in try PayloadCipher(key: key) }
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
                ?? SyncError(.store, "the store \(path) cannot be opened (\(error)); check folder, space and rights")
        }
        self.limit = limit
        self.clock = clock
        self.now = now
        outbox = OperationOutbox(database: database, lock: lock, limit: limit, clock: clock)
        namedDeviceID = deviceID
        identity = LocalIdentity(deviceID: deviceID, secret: [])
        try use(cipher)
        identity = try loadIdentity(deviceID)
        try loadChannels()
        try loadSuspended()
        try loadOffsets()
        dataVersion = try readDataVersion()
    }

    // The outbox may live on; it takes the lock for its single steps.
    deinit { lock.release() }

    // MARK: One client at a time

    /// Holds the lock again after a run has ended. When another client has changed the store since, reads it anew and
    /// starts over, as a new client does.
    ///
    /// - Returns: as `startOver()`; nil when no other client has changed the store.
    /// - Throws: `SyncError`: `storeInUse` when another client holds the lock, `storeKey` when another client has
    ///   changed the key, `store`.
    func resume() throws(SyncError) -> [Int64]? {
        try lock.hold()
        try refresh()
        guard hasForeignChanges else { return nil }
        let channels = try startOver()
        hasForeignChanges = false
        return channels
    }

    /// Reads anew what is kept in memory, when another client has changed the file.
    private func refresh() throws(SyncError) {
        let former = dataVersion
        // Set before the reading below, whose steps come here too.
        dataVersion = try readDataVersion()
        guard dataVersion != former else { return }
        do throws(SyncError) {
            try step("checking the store's key") { db in try Self.check(cipher, in: db) }
            identity = try loadIdentity(namedDeviceID)
            try loadChannels()
            try loadSuspended()
            try loadOffsets()
        } catch {
            dataVersion = former
            throw error
        }
        hasForeignChanges = true
    }

    private func readDataVersion() throws(SyncError) -> Int64 {
        try step("reading the state of the file") { db in try Int64.fetchOne(db, sql: "PRAGMA data_version") ?? 0 }
    }

    // MARK: Time

    private func loadOffsets() throws(SyncError) {
        let row = try access("reading the clock") { db in
            try Row.fetchOne(db, sql: "SELECT clock_offset_ms, signing_offset_ms FROM store")
        }
        func offset(_ milliseconds: Int64?) -> Duration? { milliseconds.map { .milliseconds($0) } }
        clockOffset = offset(row?[0])
        signingOffset = offset(row?[1])
    }

    /// The time to sign by: that of the gateway that refused a signature last, otherwise the service's, otherwise the
    /// device's.
    var signingTime: WallTime {
        let deviceTime = clock()
        return signingOffset.map { deviceTime + $0 } ?? serviceTime ?? deviceTime
    }

    /// Records the time of a gateway that has refused a signature. The difference from the device's clock is on the
    /// disk: the next process signs by it too.
    ///
    /// - Throws: `SyncError.store`; this process signs by it all the same.
    func setSigningTime(_ time: WallTime) throws(SyncError) {
        let offset = Duration.milliseconds(time.milliseconds - clock().milliseconds)
        signingOffset = offset
        try access("recording the time to sign by") { db in
            try db.execute(sql: "UPDATE store SET signing_offset_ms = ?", arguments: [offset.wholeMilliseconds])
        }
    }

    /// The service's time, by which validity ends; nil before the first connection. Whoever sets the device's clock
    /// while this process runs does not change it.
    var serviceTime: WallTime? {
        if let toldTime { return toldTime.time + toldTime.at.duration(to: now()) }
        return clockOffset.map { clock() + $0 }
    }

    /// Takes the service's time from a connection that has just been accepted. The difference from the device's clock is
    /// kept: the next process goes by it until it is connected.
    func setServiceTime(_ time: WallTime) throws(SyncError) {
        toldTime = (time, now())
        let offset = Duration.milliseconds(time.milliseconds - clock().milliseconds)
        let change = clockOffset.map { offset - $0 }
        clockOffset = offset
        // Differences below 5 s are network latency; they are not persisted.
        if let change, (.seconds(-5) ... .seconds(5)).contains(change) { return }
        try access("noting the clock") { db in
            try db.execute(sql: "UPDATE store SET clock_offset_ms = ?", arguments: [offset.wholeMilliseconds])
        }
    }

    /// Counts a connection that is about to be made, durably.
    ///
    /// - Returns: its number, above that of every connection before.
    func countConnection() throws(SyncError) -> UInt64 {
        let number = try access("counting a connection") { db in
            try Int64.fetchOne(db, sql: "UPDATE store SET connections = connections + 1 RETURNING connections")
        }
        return UInt64(number ?? 0)
    }

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

    /// A random id.
    static func makeID() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let digits = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// Reads what the database knows of channels, in place of what was known before.
    func loadChannels() throws(SyncError) {
        let rows = try access("reading the channels") { db in
            try Row.fetchAll(
                db,
                sql: "SELECT id, kind, user_id, biz_type, sync_point, complete_from, complete_upto FROM channel")
        }
        (channels, channelsByRow) = ([:], [:])
        for row in rows {
            guard let kind = ChannelKind(rawValue: row[1]) else { continue }
            let key = LocalChannel.Key(kind: kind, userID: row[2], bizType: row[3])
            remember(
                LocalChannel(
                    row: row[0], key: key, position: OplogID(row[4]),
                    range: LocalRange(from: OplogID(row[5]), upto: OplogID(row[6]))))
        }
    }

    /// Notes a channel as the database has it now.
    func remember(_ channel: LocalChannel) {
        channels[channel.key] = channel
        channelsByRow[channel.row] = channel.key
    }

    // MARK: Receiving

    /// Stores what is new of a push frame, in one transaction; all of it, or nothing when there is no room.
    ///
    /// - Parameters:
    ///   - batches: of known kinds; user channels belong to `userID`.
    ///   - bindNumber: goes into the acknowledgements of user channels.
    /// - Throws: `SyncError.store`; nothing of the frame is stored then, and nothing may be acknowledged.
    func store(
        _ batches: [Mss_Device_V1_ChannelBatch], userID: String?, bindNumber: UInt32
    ) throws(SyncError) -> StoreOutcome {
        guard try makeRoom(for: Self.bytes(of: batches.lazy.flatMap(\.entries))) else {
            var outcome = StoreOutcome()
            outcome.isFull = true
            return outcome
        }
        var changed: [LocalChannel.Key: LocalChannel] = [:]
        var outcome = StoreOutcome()
        try change("storing a push") { db in
            for batch in batches {
                guard let kind = ChannelKind(wire: batch.kind) else { continue }
                let key = LocalChannel.Key(
                    kind: kind, userID: kind.needsUser ? userID ?? "" : "", bizType: batch.bizType)
                var channel = try changed[key] ?? channel(key, in: db)
                if batch.reread != 0 {
                    try applyReread(batch, to: channel, outcome: &outcome, in: db)
                } else {
                    try apply(batch, to: &channel, bindNumber: bindNumber, outcome: &outcome, in: db)
                }
                changed[key] = channel
            }
        }
        for channel in changed.values { remember(channel) }
        return outcome
    }

    /// Bytes that entries take in the store, about.
    static func bytes(of entries: some Sequence<Mss_Device_V1_Entry>) -> Int {
        entries.reduce(0) { $0 + $1.payload.count + $1.thirdMessageID.utf8.count + 160 }
    }

    /// The channel, made when there is none; to be remembered once the transaction is through.
    func channel(_ key: LocalChannel.Key, in db: Database) throws -> LocalChannel {
        if let known = channels[key] { return known }
        try db.execute(
            sql: "INSERT INTO channel (kind, user_id, biz_type, sync_point) VALUES (?, ?, ?, 0)",
            arguments: [key.kind.rawValue, key.userID, key.bizType])
        return LocalChannel(row: db.lastInsertedRowID, key: key, position: .zero)
    }

    /// Writes what the channel's row holds beside its key.
    func update(_ channel: LocalChannel, in db: Database) throws {
        try db.cachedStatement(
            sql: "UPDATE channel SET sync_point = ?, complete_from = ?, complete_upto = ? WHERE id = ?"
        ).execute(arguments: [
            channel.position.value, channel.range.from.value, channel.range.upto.value, channel.row,
        ])
    }

    private func apply(
        _ batch: Mss_Device_V1_ChannelBatch, to channel: inout LocalChannel, bindNumber: UInt32,
        outcome: inout StoreOutcome, in db: Database
    ) throws {
        #if KNOWN_BAD
            let after = KnownBad.clientGapIgnored.isOn ? .zero : OplogID(batch.after)
            let fit = BatchFit(position: channel.position, after: after, upto: OplogID(batch.upto))
            if KnownBad.clientTakesKnown.isOn, fit == .known {
                for entry in batch.entries { try insert(entry, into: channel, as: .reread, in: db) }
                outcome.filledChannels.insert(channel.row)
            }
        #else
            let fit = BatchFit(position: channel.position, after: OplogID(batch.after), upto: OplogID(batch.upto))
        #endif
        switch fit {
        case .gap:
            #if KNOWN_BAD
                if KnownBad.clientAcknowledgesGap.isOn {
                    channel.position = OplogID(batch.upto)
                    outcome.acknowledge(channel, bindNumber: bindNumber)
                }
            #endif
            outcome.foundGap = true
            return
        case .known:
            break
        case .applies:
            for entry in batch.entries
            where entry.oplogID > channel.position.value && entry.oplogID <= batch.upto {
                if channel.key.isOfResults {
                    try take(results: entry, of: channel, outcome: &outcome, in: db)
                    continue
                }
                guard try dropRecalled(by: entry, of: channel, in: db) else { continue }
                // A re-read may have brought it already, and the app may have confirmed it since; history has it for
                // lists only.
                #if KNOWN_BAD
                    if KnownBad.clientPointWithoutData.isOn, entry.oplogID < batch.upto { continue }
                #endif
                let isAgain = entry.oplogID <= batch.againUpto
                outcome.isRolledBack = outcome.isRolledBack || isAgain
                try insert(entry, into: channel, as: isAgain ? .again : .push, in: db)
                outcome.filledChannels.insert(channel.row)
            }
            channel.range.pushed(
                after: channel.position, upto: OplogID(batch.upto), passedOver: OplogID(batch.passedOverUpto))
            channel.position = OplogID(batch.upto)
            try update(channel, in: db)
        }
        outcome.acknowledge(channel, bindNumber: bindNumber)
    }

    /// Stores entries of a re-read as never handed out, but for those that the app has confirmed; no sync point moves.
    private func applyReread(
        _ batch: Mss_Device_V1_ChannelBatch, to channel: LocalChannel, outcome: inout StoreOutcome, in db: Database
    ) throws {
        outcome.rereads.append(batch.reread)
        try db.cachedStatement(sql: "INSERT OR IGNORE INTO reread VALUES (?)")
            .execute(arguments: [Int64(bitPattern: batch.reread)])
        guard db.changesCount > 0 else { return }
        for entry in batch.entries {
            if channel.key.isOfResults {
                try take(results: entry, of: channel, outcome: &outcome, in: db)
                continue
            }
            guard try dropRecalled(by: entry, of: channel, in: db) else { continue }
            try insert(entry, into: channel, as: batch.newlyMatching ? .newlyMatching : .reread, in: db)
            outcome.filledChannels.insert(channel.row)
        }
    }

    /// How an oplog came, which decides what becomes of one that is here already.
    enum Origin {
        /// The channel's own batch.
        case push
        /// The same, of what this store took before it was put back to an older copy of itself.
        case again
        /// A changed parameter lets it through.
        case newlyMatching
        /// One oplog that an operator has sent again.
        case reread
        /// All of a channel, asked for by this app.
        case recovery
        /// For a list, not for the app's handlers.
        case history

        var state: OplogState { self == .history ? .history : .waiting }
        var isReplay: Bool { self == .again || self == .reread || self == .recovery }

        private static let anew = """
            UPDATE SET state = \(OplogState.waiting.rawValue), hand_outs = 0, repeats = 0, needs_report = 0,
            is_replay = 1, payload = excluded.payload, valid_until_ms = excluded.valid_until_ms WHERE NOT is_recalled
            """

        var orIfKnown: String {
            switch self {
            case .push, .again, .newlyMatching:
                "UPDATE SET state = \(OplogState.waiting.rawValue) WHERE state = \(OplogState.history.rawValue)"
            case .reread:
                #if KNOWN_BAD
                    KnownBad.clientTakesKnown.isOn
                        ? Self.anew : Self.anew + " AND state <> \(OplogState.confirmed.rawValue)"
                #else
                    Self.anew + " AND state <> \(OplogState.confirmed.rawValue)"
                #endif
            case .recovery: Self.anew + " AND NOT (state = \(OplogState.confirmed.rawValue) AND needs_report)"
            case .history: "NOTHING"
            }
        }
    }

    /// Stores an entry as it comes, or what its origin says when it is here.
    func insert(
        _ entry: Mss_Device_V1_Entry, into channel: LocalChannel, as origin: Origin, in db: Database
    ) throws {
        // A replay of what is not here any more was confirmed and forgotten, and a list has been seen: the app has had
        // it.
        let wasShown =
            origin == .history || origin == .again || (origin.isReplay && entry.oplogID <= channel.position.value)
        let payload =
            try cipher?.seal(entry.payload, channelRow: channel.row, oplogID: entry.oplogID) ?? entry.payload
        try db.cachedStatement(
            sql: """
                INSERT INTO oplog (
                    channel_id, oplog_id, payload, is_binary, third_message_id, created_at_ms, valid_until_ms, recalls,
                    is_replay, was_shown, state)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO \(origin.orIfKnown)
                """
        ).execute(arguments: [
            channel.row, entry.oplogID, payload, entry.binary, entry.thirdMessageID, entry.createdAtMs,
            entry.validUntilMs, entry.recalls, origin.isReplay, wasShown, origin.state.rawValue,
        ])
    }

    /// Deletes what a tombstone recalls, or hides it when the app has confirmed it.
    ///
    /// - Returns: whether the entry is for the app: false for a tombstone of what the app has never seen.
    private func dropRecalled(
        by entry: Mss_Device_V1_Entry, of channel: LocalChannel, in db: Database
    ) throws -> Bool {
        guard entry.recalls != 0 else { return true }
        try db.cachedStatement(
            sql: """
                UPDATE oplog SET is_recalled = 1, payload = x'' WHERE channel_id = ? AND oplog_id = ? AND state = ?
                """
        ).execute(arguments: [channel.row, entry.recalls, OplogState.confirmed.rawValue])
        let wasShown = try Bool.fetchAll(
            db.cachedStatement(
                sql: """
                    DELETE FROM oplog WHERE channel_id = ? AND oplog_id = ? AND state <> ? RETURNING was_shown
                    """), arguments: [channel.row, entry.recalls, OplogState.confirmed.rawValue])
        return wasShown.first ?? true
    }

    /// Sync points for Connect (`userID` nil) or Bind, of channels that have one, as many as fit the bytes given.
    ///
    /// Leaving some out is safe: the gateway then sends more than is needed, and it is dropped as known.
    func syncPoints(ofUser userID: String?, maxBytes: Int) -> [Mss_Device_V1_SyncPoint] {
        var left = maxBytes
        var points: [Mss_Device_V1_SyncPoint] = []
        let userID = userID ?? ""
        for channel in channels.values
        where channel.key.userID.isSame(as: userID) && channel.key.kind.needsUser != userID.isEmpty
            && channel.position > .zero
        {
            left -= channel.key.bizType.utf8.count + 24
            guard left >= 0 else { break }
            points.append(
                .with {
                    $0.kind = channel.key.kind.wire
                    $0.bizType = channel.key.bizType
                    $0.oplogID = channel.position.value
                })
        }
        return points
    }

    // MARK: Access

    /// The channel of a row.
    func channel(row: Int64) -> LocalChannel? { channelsByRow[row].flatMap { channels[$0] } }

    /// The channel of a kind and business type, for users' kinds of this user.
    func channel(kind: Mss_Device_V1_ChannelKind, bizType: String, userID: String?) -> LocalChannel? {
        guard let kind = ChannelKind(wire: kind) else { return nil }
        return channels[LocalChannel.Key(kind: kind, userID: kind.needsUser ? userID ?? "" : "", bizType: bizType)]
    }

    /// The channels of a business type that this user may see; more than one only when its configuration was made anew
    /// with another kind.
    func channels(of bizType: String, visibleTo userID: String?) -> [LocalChannel] {
        channels.values.filter { $0.key.bizType.isSame(as: bizType) && $0.isVisible(to: userID) }
    }

    /// All channels that this user may see.
    func channels(visibleTo userID: String?) -> [LocalChannel] { channels.values.filter { $0.isVisible(to: userID) } }

    /// Performs a step on the database; between runs it takes the lock for this step, and reads anew what another
    /// client has changed.
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
            throw error as? SyncError
                ?? SyncError(.store, "\(name) failed (\(error)); check space and rights of the store")
        }
    }

    /// The same, in one transaction.
    func change(_ step: String, _ body: (Database) throws -> Void) throws(SyncError) {
        try access(step) { db in
            try db.inTransaction(.immediate) {
                try body(db)
                return .commit
            }
        }
    }
}
