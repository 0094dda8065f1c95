import PostgreSQL
package import SyncModel

/// Appends and reads oplogs.
///
/// **Ordering law.** An id is drawn under its channel's row lock, which is held to commit. So within a channel id
/// order = commit order = the order in which calls are answered, with any number of writers, and a reader that sees
/// n sees everything below n.
package enum OplogStore {
    /// One push to store. The oplog's id and creation time are given by the store.
    package struct Append: Sendable {
        package var address: ChannelAddress
        package var oplog: Oplog

        package init(address: ChannelAddress, oplog: Oplog) {
            self.address = address
            self.oplog = oplog
        }
    }

    /// What became of one push.
    package struct Appended: Sendable, Hashable {
        package var channelID: Int64
        package var oplogID: OplogID
        /// The key was known: nothing was stored, the id is the first call's.
        package var isDuplicate: Bool
        /// The channel's head before this batch, and after it: no less than its newest id.
        package var headBefore: OplogID
        package var headAfter: OplogID
        package var validUntil: WallTime
        package var createdAt: WallTime
        /// The rules of the configuration in force when it was stored.
        package var isPersistent: Bool
        package var rules: ChannelRules
        /// A global push that goes to every gateway at once (spec D15).
        package var isImmediate: Bool
        /// Its payload is stored nowhere and nobody has recorded what became of it: it goes out now, under this id, also
        /// when the key was known.
        package var awaitsOutcome: Bool
        /// The database's clock in this call.
        package var databaseTime: WallTime

        /// As a push whose outcome is known. `createdAt` is of this call, and a repeat's row may be as old as any.
        package var livePush: LivePush {
            LivePush(
                channelID: channelID, oplogID: oplogID,
                earliest: isDuplicate ? WallTime(milliseconds: 0) : createdAt)
        }
    }

    /// A push that is stored nowhere and whose outcome is known now.
    package struct LivePush: Sendable, Hashable {
        package var channelID: Int64
        package var oplogID: OplogID
        /// Its row was not made before this.
        package var earliest: WallTime
    }

    /// Records that the outcome of these is known: from then on a repeat is a duplicate (spec D18), and no session waits
    /// for their notices.
    package static func recordOutcomes(of pushes: [LivePush]) -> Query<Void> {
        let first = pushes.map(\.earliest).min() ?? WallTime(milliseconds: 0)
        let parameters: [PostgresValue] = [
            .int64Array(pushes.map(\.channelID)), .int64Array(pushes.map(\.oplogID.value)), .int64(first.milliseconds),
        ]
        return Query(PostgresStatement("SELECT record_live_outcomes($1, $2, $3)", parameters)) { _ in }
    }

    /// Of a channel's oplogs, those that its present configuration has: not those from before it was deleted and
    /// created again (spec D17).
    static let isOfConfiguration = """
        o.created_at >= (
            SELECT f.data_since FROM channel c
            JOIN sync_configuration f ON f.instance_id = c.instance_id AND f.biz_type = c.biz_type
            WHERE c.channel_id = $1)
        """

    /// The head of a channel; read before `page`, so that a page that came back short covers at least this far.
    ///
    /// - Parameter owner: of a single-device channel, who wants to read; nil is the answer when another device owns
    ///   the user now (spec D8).
    package static func head(of channelID: Int64, readBy owner: DeviceID? = nil) -> Query<OplogID?> {
        let sql = """
            SELECT c.head, $2 = '' OR coalesce(w.device_id = $2, false)
            FROM channel c LEFT JOIN owner w ON w.instance_id = c.instance_id AND w.user_id = c.target
            WHERE c.channel_id = $1
            """
        return Query(PostgresStatement(sql, [.int64(channelID), .text(owner?.text ?? "")])) { rows in
            guard let row = rows.first else { return .zero }
            return row.bool(1) ? OplogID(row.int64(0)) : nil
        }
    }

    /// The first valid, stored oplogs above a position, in id order. Among them stand, without payload, those that are
    /// not persistent and whose notice may still be on its way.
    package static func page(of channelID: Int64, after: OplogID, limit: Int) -> Query<[Oplog]> {
        let sql = """
            SELECT \(columns), o.awaits_outcome IS TRUE
            FROM oplog o
            WHERE channel_id = $1 AND oplog_id > $2 AND valid_until > now()
                AND (payload IS NOT NULL OR o.awaits_outcome AND o.recalled_at IS NULL
                    AND o.created_at > now() - make_interval(secs => $4 / 1000.0))
                AND \(isOfConfiguration)
            ORDER BY oplog_id LIMIT $3
            """
        let parameters: [PostgresValue] = [
            .int64(channelID), .int64(after.value), .int32(Int32(limit)),
            .int64(Limits.liveNoticeWait.wholeMilliseconds),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in
            rows.map { row in
                var oplog = oplog(of: row, from: 0)
                oplog.isPersistent = !row.bool(columnCount)
                return oplog
            }
        }
    }

    /// The columns of an oplog's restrictions, of the table called o.
    static let targetingColumns =
        "o.operating_system, o.minimum_version, o.maximum_version, o.share_start, o.share_size"

    /// A stored oplog's columns, of the table called o.
    static let columns = """
        o.oplog_id, o.third_message_id, o.payload, o.is_binary, \(targetingColumns),
        floor(extract(epoch FROM o.valid_until) * 1000)::bigint, floor(extract(epoch FROM o.created_at) * 1000)::bigint,
        o.recalls, coalesce(o.attributes, '')
        """

    /// How many `columns` are.
    private static let columnCount = 13

    /// Reads `columns`.
    static func oplog(of row: PostgresRow, from first: Int) -> Oplog {
        Oplog(
            id: OplogID(row.int64(first)), thirdMessageID: ThirdMessageID(row.text(first + 1)),
            payload: row.bytes(first + 2), isBinary: row.bool(first + 3),
            targeting: targeting(of: row, from: first + 4),
            validUntil: WallTime(milliseconds: row.int64(first + 9)),
            createdAt: WallTime(milliseconds: row.int64(first + 10)), isPersistent: true,
            recalls: row.isNull(first + 11) ? nil : OplogID(row.int64(first + 11)), attributes: row.text(first + 12))
    }

    /// Tombstones above a position up to another, in id order: a threshold does not pass them over (spec H7).
    package static func tombstones(of channelID: Int64, after: OplogID, upto: OplogID, limit: Int) -> Query<[Oplog]> {
        let sql = """
            SELECT \(columns)
            FROM oplog o
            WHERE channel_id = $1 AND oplog_id > $2 AND oplog_id <= $3 AND recalls IS NOT NULL AND valid_until > now()
                AND \(isOfConfiguration)
            ORDER BY oplog_id LIMIT $4
            """
        let parameters: [PostgresValue] = [
            .int64(channelID), .int64(after.value), .int64(upto.value), .int32(Int32(limit)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in rows.map { oplog(of: $0, from: 0) } }
    }

    /// Where a valid, stored oplog stands and whom it is restricted to.
    package struct Standing: Sendable {
        package var id: OplogID
        package var targeting: Targeting
        /// What filters look at.
        package var attributes: String

        package init(id: OplogID, targeting: Targeting, attributes: String) {
            self.id = id
            self.targeting = targeting
            self.attributes = attributes
        }
    }

    /// The last valid, stored oplogs between two positions, newest first: what a threshold counts over.
    package static func newest(
        of channelID: Int64, after: OplogID, below: OplogID, limit: Int
    ) -> Query<[Standing]> {
        let sql = """
            SELECT oplog_id, coalesce(o.attributes, ''), \(targetingColumns)
            FROM oplog o
            WHERE channel_id = $1 AND oplog_id > $2 AND oplog_id < $3 AND payload IS NOT NULL AND valid_until > now()
                AND recalls IS NULL AND \(isOfConfiguration)
            ORDER BY oplog_id DESC LIMIT $4
            """
        let parameters: [PostgresValue] = [
            .int64(channelID), .int64(after.value), .int64(below.value), .int32(Int32(limit)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in
            rows.map {
                Standing(id: OplogID($0.int64(0)), targeting: targeting(of: $0, from: 2), attributes: $0.text(1))
            }
        }
    }

    /// What became of a recall.
    package struct Recalled: Sendable {
        package var channelID: Int64
        package var oplogID: OplogID
        /// The entry that tells devices which have it; its id lies above the channel's head before.
        package var tombstone: Oplog
        package var headBefore: OplogID
    }

    /// Recalls an oplog: nobody reads its payload any more, and a tombstone follows in its channel. Repeating it
    /// changes nothing. Nil: there is no such oplog.
    ///
    /// - Parameter person: who asked for it, for the operation records; nil: a backend did.
    package static func recall(
        _ address: ChannelAddress, _ id: ThirdMessageID, by person: OperationActor? = nil
    ) -> Query<Recalled?> {
        let sql = """
            SELECT \(recalledColumns)
            FROM recall_oplog($1, $2, $3, $4, $5, $6, $7)
            """
        let parameters: [PostgresValue] = [
            .text(address.target.instanceID.text), .int16(address.target.kind.rawValue), .text(address.target.target),
            .text(address.bizType.text), .text(id.text), .int64(stableHash(id.text)),
            person?.value ?? .null,
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in
            rows.first.map { recalled(of: $0, from: 0) }
        }
    }

    /// The columns of what became of a recall.
    static let recalledColumns = """
        channel, id, tombstone, head_before, operating_system, minimum_version, maximum_version, share_start, share_size,
        valid_until_ms, created_at_ms
        """

    /// Reads `recalledColumns`.
    static func recalled(of row: PostgresRow, from first: Int) -> Recalled {
        let tombstone = Oplog(
            id: OplogID(row.int64(first + 2)), thirdMessageID: ThirdMessageID(""), payload: [], isBinary: false,
            targeting: targeting(of: row, from: first + 4), validUntil: WallTime(milliseconds: row.int64(first + 9)),
            createdAt: WallTime(milliseconds: row.int64(first + 10)), isPersistent: true,
            recalls: OplogID(row.int64(first + 1)))
        return Recalled(
            channelID: row.int64(first), oplogID: OplogID(row.int64(first + 1)), tombstone: tombstone,
            headBefore: OplogID(row.int64(first + 3)))
    }

    /// A partition whose oplogs, and their keys, are all past their time (spec D11, D18).
    package struct EndedPartition: Sendable {
        package var name: String
        /// False: it was detached before, by a process that died before it could drop it.
        package var isAttached: Bool
        /// Detaching has begun and was interrupted.
        package var isDetaching: Bool

        /// The statements that detach it, each to be run by itself: detaching concurrently takes no transaction. It also
        /// takes the table's owner, who is nobody but for these statements.
        package var detaching: [String] {
            guard isAttached else { return [] }
            let form = isDetaching ? "FINALIZE" : "CONCURRENTLY"
            return ["SET ROLE mss_oplog_keeper", "ALTER TABLE oplog DETACH PARTITION \(name) \(form)", "RESET ROLE"]
        }

        /// Drops it once it is detached.
        package var drop: Query<Void> {
            Query(PostgresStatement("SELECT drop_ended_oplog_partition($1)", [.text(name)])) { _ in }
        }
    }

    /// The partitions that retention has ended; names come from the catalogue and are of one form.
    package static let endedPartitions = Query(
        PostgresStatement("SELECT name, is_attached, is_detaching FROM ended_oplog_partition ORDER BY 1")
    ) { rows in
        rows.map { EndedPartition(name: $0.text(0), isAttached: $0.bool(1), isDetaching: $0.bool(2)) }
    }

    /// Makes the partitions that pushes of the next weeks go to. No push waits for it; it gives up on a lock after 200 ms.
    package static func ensurePartitions(weeksAhead: Int) -> Query<Void> {
        Query(PostgresStatement("SELECT ensure_oplog_partitions($1)", [.int32(Int32(weeksAhead))])) { _ in }
    }

    /// Whether pushes of the present week have a partition to go to.
    package static let hasPresentPartition = Query(PostgresStatement("SELECT has_present_oplog_partition()")) { rows in
        rows.first?.bool(0) ?? false
    }

    /// Of these channels, those that another transaction holds locked now. It waits for none of them.
    package static func lockedChannels(of channels: [ChannelAddress]) -> Query<Set<ChannelAddress>> {
        let parameters: [PostgresValue] = [
            .textArray(channels.map(\.target.instanceID.text)), .int16Array(channels.map(\.target.kind.rawValue)),
            .textArray(channels.map(\.bizType.text)), .textArray(channels.map(\.target.target)),
        ]
        return Query(PostgresStatement("SELECT * FROM find_locked_channels($1, $2, $3, $4)", parameters)) { rows in
            Set(rows.map { channels[Int($0.int64(0)) - 1] })
        }
    }

    static func targeting(of row: PostgresRow, from column: Int) -> Targeting {
        let (minimum, maximum) = (row.text(column + 1), row.text(column + 2))
        return Targeting(
            operatingSystem: OperatingSystem(rawValue: row.int16(column)),
            minimumVersion: minimum.isEmpty ? nil : minimum,
            maximumVersion: maximum.isEmpty ? nil : maximum,
            share: DeviceShare(start: Int(row.int16(column + 3)), size: Int(row.int16(column + 4))))
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
