import PostgreSQL
package import SyncModel

/// Appends and reads oplogs.
///
/// **Ordering law.** An id is drawn under its channel's row lock, which is held until the commit. So within a channel,
/// id order, commit order and answer order are the same, with any number of writers. A reader that sees n also sees
/// every id below n.
package enum OplogStore {
    /// One push to store. The store gives the oplog's id and creation time.
    package struct Append: Sendable {
        package var address: ChannelAddress
        package var oplog: Oplog

        package init(address: ChannelAddress, oplog: Oplog) {
            self.address = address
            self.oplog = oplog
        }
    }

    /// The result of one append.
    package struct Appended: Sendable, Hashable {
        package var channelID: Int64
        package var oplogID: OplogID
        /// The `thirdMsgId` was known: nothing was stored, and the id is that of the first call.
        package var isDuplicate: Bool
        /// The channel's head before and after this batch.
        package var headBefore: OplogID
        package var headAfter: OplogID
        package var validUntil: WallTime
        package var createdAt: WallTime
        /// The rules of the configuration in force at the append.
        package var isPersistent: Bool
        package var rules: ChannelRules
        /// A global push that every gateway sends at once (D15).
        package var isImmediate: Bool
        /// A non-persistent push without a recorded outcome: it is sent now, under this id, also when the `thirdMsgId`
        /// was known.
        package var awaitsOutcome: Bool
        /// The database's clock in this call.
        package var databaseTime: WallTime

        /// The push with the earliest time of its row. A repeat's row may be of any age, because `createdAt` is the
        /// time of this call.
        package var livePush: LivePush {
            LivePush(
                channelID: channelID, oplogID: oplogID,
                earliest: isDuplicate ? WallTime(milliseconds: 0) : createdAt)
        }
    }

    /// A non-persistent push whose outcome is known now.
    package struct LivePush: Sendable, Hashable {
        package var channelID: Int64
        package var oplogID: OplogID
        /// The row was not created before this time.
        package var earliest: WallTime
    }

    /// Records that the outcome of these pushes is known: from then on a repeat is a duplicate (D18), and no session
    /// waits for their notices.
    package static func recordOutcomes(of pushes: [LivePush], in store: StoreSchema = .every) -> Query<Void> {
        let first = pushes.map(\.earliest).min() ?? WallTime(milliseconds: 0)
        let parameters: [PostgresValue] = [
            .int64Array(pushes.map(\.channelID)), .int64Array(pushes.map(\.oplogID.value)), .int64(first.milliseconds),
        ]
        let sql = "SELECT \(store.prefix)record_live_outcomes($1, $2, $3)"
        return Query(PostgresStatement(sql, parameters)) { _ in }
    }

    /// The condition that an oplog belongs to the present configuration, not to a deleted one of the same Sync ID
    /// (D17).
    static func isOfConfiguration(in store: StoreSchema) -> String {
        """
        o.created_at >= (
            SELECT f.data_since FROM \(store.prefix)channel c
            JOIN sync_configuration f ON f.instance_id = c.instance_id AND f.biz_type = c.biz_type
            WHERE c.channel_id = $1)
        """
    }

    /// The head of a channel; read before `page`, so that a short page covers at least this range.
    ///
    /// - Parameter owner: for a single-device channel, the device that reads; the answer is nil when another device is
    ///   the owner now (D8).
    package static func head(
        of channelID: Int64, readBy owner: DeviceID? = nil, in store: StoreSchema = .every
    ) -> Query<OplogID?> {
        let sql = """
            SELECT c.head, $2 = '' OR coalesce(w.device_id = $2, false)
            FROM \(store.prefix)channel c LEFT JOIN owner w ON w.instance_id = c.instance_id AND w.user_id = c.target
            WHERE c.channel_id = $1
            """
        return Query(PostgresStatement(sql, [.int64(channelID), .text(owner?.text ?? "")])) {
            rows throws(PostgresError) in
            try rows.first { columns throws(PostgresError) -> OplogID? in
                let head = try columns.next(OplogID.self)
                return try columns.next(Bool.self) ? head : nil
            } ?? OplogID.zero
        }
    }

    /// The first valid, stored oplogs above a position, in id order. Non-persistent oplogs whose notice may still
    /// arrive are among them, without payload.
    package static func page(
        of channelID: Int64, after: OplogID, limit: Int, in store: StoreSchema = .every
    ) -> Query<[Oplog]> {
        let sql = """
            SELECT \(columns), o.awaits_outcome IS TRUE
            FROM \(store.prefix)oplog o
            WHERE channel_id = $1 AND oplog_id > $2 AND valid_until > now()
                AND (payload IS NOT NULL OR o.awaits_outcome AND o.recalled_at IS NULL
                    AND o.created_at > now() - make_interval(secs => $4 / 1000.0))
                AND \(isOfConfiguration(in: store))
            ORDER BY oplog_id LIMIT $3
            """
        let parameters: [PostgresValue] = [
            .int64(channelID), .int64(after.value), .int32(Int32(limit)),
            .int64(Limits.liveNoticeWait.wholeMilliseconds),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.decode { columns throws(PostgresError) in
                var oplog = try oplog(&columns)
                oplog.isPersistent = try !columns.next(Bool.self)
                return oplog
            }
        }
    }

    /// The targeting columns of an oplog, of the table called o.
    static let targetingColumns =
        "o.operating_system, o.minimum_version, o.maximum_version, o.share_start, o.share_size"

    /// A stored oplog's columns, of the table called o.
    static let columns = """
        o.oplog_id, o.third_message_id, o.payload, o.is_binary, \(targetingColumns),
        floor(extract(epoch FROM o.valid_until) * 1000)::bigint, floor(extract(epoch FROM o.created_at) * 1000)::bigint,
        o.recalls, coalesce(o.attributes, ''), coalesce(o.conversation, '')
        """

    /// Reads `columns`. A non-persistent or recalled oplog, and a tombstone, have no payload.
    static func oplog(_ columns: inout PostgresColumns) throws(PostgresError) -> Oplog {
        try Oplog(
            id: columns.next(), thirdMessageID: columns.next(), payload: columns.next([UInt8]?.self) ?? [],
            isBinary: columns.next(), targeting: targeting(&columns), validUntil: columns.next(),
            createdAt: columns.next(), isPersistent: true, recalls: columns.next(), attributes: columns.next(),
            conversation: columns.next())
    }

    /// Tombstones above one id up to another, in id order: a threshold does not discard them (H7).
    package static func tombstones(
        of channelID: Int64, after: OplogID, upto: OplogID, limit: Int, in store: StoreSchema = .every
    ) -> Query<[Oplog]> {
        let sql = """
            SELECT \(columns)
            FROM \(store.prefix)oplog o
            WHERE channel_id = $1 AND oplog_id > $2 AND oplog_id <= $3 AND recalls IS NOT NULL AND valid_until > now()
                AND \(isOfConfiguration(in: store))
            ORDER BY oplog_id LIMIT $4
            """
        let parameters: [PostgresValue] = [
            .int64(channelID), .int64(after.value), .int64(upto.value), .int32(Int32(limit)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in try rows.decode(oplog) }
    }

    /// A valid, stored oplog and its targeting.
    package struct ValidOplog: Sendable {
        package var id: OplogID
        package var targeting: Targeting
        /// The values that filters read.
        package var attributes: String

        package init(id: OplogID, targeting: Targeting, attributes: String) {
            self.id = id
            self.targeting = targeting
            self.attributes = attributes
        }
    }

    /// The last valid, stored oplogs between two positions, newest first: the candidates of a threshold.
    package static func newest(
        of channelID: Int64, after: OplogID, below: OplogID, limit: Int, in store: StoreSchema = .every
    ) -> Query<[ValidOplog]> {
        let sql = """
            SELECT oplog_id, \(targetingColumns), coalesce(o.attributes, '')
            FROM \(store.prefix)oplog o
            WHERE channel_id = $1 AND oplog_id > $2 AND oplog_id < $3 AND payload IS NOT NULL AND valid_until > now()
                AND recalls IS NULL AND \(isOfConfiguration(in: store))
            ORDER BY oplog_id DESC LIMIT $4
            """
        let parameters: [PostgresValue] = [
            .int64(channelID), .int64(after.value), .int64(below.value), .int32(Int32(limit)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.decode { columns throws(PostgresError) in
                try ValidOplog(id: columns.next(), targeting: targeting(&columns), attributes: columns.next())
            }
        }
    }

    /// The result of a recall.
    package struct Recalled: Sendable {
        package var channelID: Int64
        package var oplogID: OplogID
        /// The oplog that tells devices of the recall; its id is above the channel's head before it.
        package var tombstone: Oplog
        package var headBefore: OplogID
    }

    /// Recalls an oplog: its payload cannot be read any more, and a tombstone follows in its channel. A repeat changes
    /// nothing. A nil value means: there is no such oplog.
    ///
    /// - Parameter person: the requesting operator, for the audit record; nil: a backend requested it.
    package static func recall(
        _ address: ChannelAddress, _ id: ThirdMessageID, by person: OperationActor? = nil,
        in store: StoreSchema = .every
    ) -> Query<Recalled?> {
        let sql = """
            SELECT \(recalledColumns)
            FROM \(store.prefix)recall_oplog($1, $2, $3, $4, $5, $6, $7)
            """
        let parameters: [PostgresValue] = [
            .text(address.target.instanceID.text), .int16(address.target.kind.rawValue), .text(address.target.target),
            .text(address.bizType.text), .text(id.text), .int64(stableHash(id.text)),
            person?.value ?? .null,
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.first(recalled)
        }
    }

    /// The columns of a recall's result.
    static let recalledColumns = """
        channel, id, head_before, tombstone, operating_system, minimum_version, maximum_version, share_start,
        share_size, valid_until_ms, created_at_ms
        """

    /// Reads `recalledColumns`.
    static func recalled(_ columns: inout PostgresColumns) throws(PostgresError) -> Recalled {
        let channelID = try columns.next(Int64.self)
        let oplogID = try columns.next(OplogID.self)
        let headBefore = try columns.next(OplogID.self)
        let tombstone = try Oplog(
            id: columns.next(), thirdMessageID: ThirdMessageID(""), payload: [], isBinary: false,
            targeting: targeting(&columns), validUntil: columns.next(), createdAt: columns.next(), isPersistent: true,
            recalls: oplogID)
        return Recalled(channelID: channelID, oplogID: oplogID, tombstone: tombstone, headBefore: headBefore)
    }

    /// A partition whose oplogs and `thirdMsgId`s have all ended (D11, D18).
    package struct EndedPartition: Sendable {
        package var name: String
        var store: StoreSchema
        /// False: a process detached it before and died before it could drop it.
        package var isAttached: Bool
        /// Detaching has begun and was interrupted.
        package var isDetaching: Bool

        /// The statements that detach it, each executed separately, because detaching concurrently allows no
        /// transaction. Only the table's owner can detach, and a connection takes that role only for these statements.
        package var detaching: [String] {
            guard isAttached else { return [] }
            let form = isDetaching ? "FINALIZE" : "CONCURRENTLY"
            let detach = "ALTER TABLE \(store.prefix)oplog DETACH PARTITION \(store.prefix)\(name) \(form)"
            return ["SET ROLE mss_oplog_keeper", detach, "RESET ROLE"]
        }

        /// Drops it after it was detached.
        package var drop: Query<Void> {
            Query(PostgresStatement("SELECT \(store.prefix)drop_ended_oplog_partition($1)", [.text(name)])) { _ in }
        }
    }

    /// The partitions that retention has ended; their names come from the catalogue and match one pattern.
    package static func endedPartitions(of store: StoreSchema = .every) -> Query<[EndedPartition]> {
        let sql = "SELECT name, is_attached, is_detaching FROM \(store.prefix)ended_oplog_partition ORDER BY 1"
        return Query(PostgresStatement(sql)) { rows throws(PostgresError) in
            try rows.decode { columns throws(PostgresError) in
                try EndedPartition(
                    name: columns.next(), store: store, isAttached: columns.next(), isDetaching: columns.next())
            }
        }
    }

    /// Creates the partitions for pushes of the next weeks. No push waits for it; it fails after 200 ms when it must
    /// wait for a lock.
    package static func ensurePartitions(weeksAhead: Int, of store: StoreSchema = .every) -> Query<Void> {
        let sql = "SELECT \(store.prefix)ensure_oplog_partitions($1)"
        return Query(PostgresStatement(sql, [.int32(Int32(weeksAhead))])) { _ in }
    }

    /// Whether the present week has a partition for its pushes, in every store.
    package static func hasPresentPartition(in stores: StoreLayout) -> Query<Bool> {
        let calls = stores.stores.map { "\($0.prefix)has_present_oplog_partition()" }
        return Query(PostgresStatement("SELECT \(calls.joined(separator: " AND "))")) { rows throws(PostgresError) in
            try rows.first(Bool.self) ?? false
        }
    }

    /// The channels that another transaction holds locked now. The query waits for none of them.
    package static func lockedChannels(
        of channels: [ChannelAddress], in store: StoreSchema = .every
    ) -> Query<Set<ChannelAddress>> {
        let parameters: [PostgresValue] = [
            .textArray(channels.map(\.target.instanceID.text)), .int16Array(channels.map(\.target.kind.rawValue)),
            .textArray(channels.map(\.bizType.text)), .textArray(channels.map(\.target.target)),
        ]
        let sql = "SELECT * FROM \(store.prefix)find_locked_channels($1, $2, $3, $4)"
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            Set(try rows.decode(Int.self).map { channels[$0 - 1] })
        }
    }

    /// Reads `targetingColumns`.
    static func targeting(_ columns: inout PostgresColumns) throws(PostgresError) -> Targeting {
        try Targeting(
            operatingSystem: OperatingSystem(rawValue: columns.next()), minimumVersion: columns.nextNonEmpty(),
            maximumVersion: columns.nextNonEmpty(),
            share: DeviceShare(start: columns.next(), size: columns.next()))
    }

    /// FNV-1a over the UTF-8 bytes: the index key of a thirdMsgId, the same in every build and server version.
    static func stableHash(_ text: String) -> Int64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in text.utf8 {
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
        }
        return Int64(bitPattern: hash)
    }
}
