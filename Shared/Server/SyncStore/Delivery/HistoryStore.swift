import PostgreSQL
package import SyncModel

/// Answers queries of devices: oplogs anywhere in a channel, and the state of channels.
///
/// The cost of one answer does not depend on the length of the channel: rows are read from the index in order, and no
/// rule skips rows before they are counted.
package enum HistoryStore {
    /// One oplog that was read.
    package struct Candidate: Sendable, Hashable {
        package var id: OplogID
        package var targeting: Targeting
        package var payloadBytes: Int
        /// Valid, stored, no tombstone, and of the present configuration.
        package var isOffered: Bool
        /// The values that filters read.
        package var attributes: String

        package init(id: OplogID, targeting: Targeting, payloadBytes: Int, isOffered: Bool, attributes: String = "") {
            self.id = id
            self.targeting = targeting
            self.payloadBytes = payloadBytes
            self.isOffered = isOffered
            self.attributes = attributes
        }
    }

    /// Whether an oplog, of the table called o, may be shown now.
    private static let isOffered = """
        o.payload IS NOT NULL AND o.recalls IS NULL AND o.valid_until > now()
        """

    /// The next oplogs between two ids, which are excluded, without their payloads.
    ///
    /// - Parameter conversation: only oplogs of this one; empty: all.
    package static func candidates(
        of channelID: Int64, _ conversation: String = "", after: OplogID, before: OplogID, oldestFirst: Bool,
        limit: Int, in store: StoreSchema = .every
    ) -> Query<[Candidate]> {
        let sql = """
            SELECT o.oplog_id, \(OplogStore.targetingColumns),
                coalesce(octet_length(o.payload), 0),
                coalesce(\(isOffered) AND \(OplogStore.isOfConfiguration(in: store)), false),
                coalesce(o.attributes, '')
            FROM \(store.prefix)oplog o
            WHERE channel_id = $1 AND oplog_id > $2 AND oplog_id < $3
                \(conversation.isEmpty ? "" : "AND o.conversation = $5")
            ORDER BY oplog_id \(oldestFirst ? "ASC" : "DESC") LIMIT $4
            """
        var parameters: [PostgresValue] = [
            .int64(channelID), .int64(after.value), .int64(before.value), .int32(Int32(clamping: limit)),
        ]
        if !conversation.isEmpty { parameters.append(.text(conversation)) }
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.decode { columns throws(PostgresError) in
                try Candidate(
                    id: columns.next(), targeting: OplogStore.targeting(&columns), payloadBytes: columns.next(),
                    isOffered: columns.next(), attributes: columns.next())
            }
        }
    }

    /// These oplogs in this order, without those that have expired or were recalled.
    package static func oplogs(
        of channelID: Int64, ids: [OplogID], in store: StoreSchema = .every
    ) -> Query<[Oplog]> {
        let sql = """
            SELECT \(OplogStore.columns)
            FROM unnest($2::bigint[]) WITH ORDINALITY AS i (id, ordinal)
            JOIN \(store.prefix)oplog o ON o.channel_id = $1 AND o.oplog_id = i.id
            WHERE \(isOffered) AND \(OplogStore.isOfConfiguration(in: store))
            ORDER BY i.ordinal
            """
        let parameters: [PostgresValue] = [.int64(channelID), .int64Array(ids.map(\.value))]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.decode(OplogStore.oplog)
        }
    }

    /// A conversation of a channel.
    package struct Conversation: Sendable {
        package var name: String
        /// The number of its oplogs above a position, by targeting; among the newest `Limits.oplogsLookedAt`.
        package var waiting: [Targeting: Int] = [:]
    }

    /// The conversations after a name, in the order of their bytes. One step in the index finds each, however many
    /// oplogs it has.
    ///
    /// - Parameter position: oplogs above it are counted.
    package static func conversations(
        of channelID: Int64, after name: String, above position: OplogID, limit: Int, in store: StoreSchema = .every
    ) -> Query<[Conversation]> {
        let next = """
            SELECT o.conversation FROM \(store.prefix)oplog o
            WHERE o.channel_id = $1 AND o.conversation >
            """
        let sql = """
            WITH RECURSIVE found (conversation, ordinal) AS (
                SELECT (\(next) $2 ORDER BY o.conversation LIMIT 1), 1
                UNION ALL
                SELECT (\(next) found.conversation ORDER BY o.conversation LIMIT 1), found.ordinal + 1
                FROM found WHERE found.conversation IS NOT NULL AND found.ordinal < $3
            )
            SELECT f.conversation, g.waiting, g.operating_system, g.minimum_version, g.maximum_version, g.share_start,
                g.share_size
            FROM found f
            LEFT JOIN LATERAL (
                SELECT r.operating_system, r.minimum_version, r.maximum_version, r.share_start, r.share_size,
                    count(*) AS waiting
                FROM (
                    SELECT \(OplogStore.targetingColumns),
                        \(isOffered) AND \(OplogStore.isOfConfiguration(in: store)) AS is_offered
                    FROM \(store.prefix)oplog o
                    WHERE o.channel_id = $1 AND o.conversation = f.conversation AND o.oplog_id > $4
                    ORDER BY o.oplog_id DESC LIMIT $5
                ) r
                WHERE r.is_offered GROUP BY 1, 2, 3, 4, 5
            ) g ON true
            WHERE f.conversation IS NOT NULL ORDER BY f.ordinal
            """
        let parameters: [PostgresValue] = [
            .int64(channelID), .text(name), .int32(Int32(clamping: limit)), .int64(position.value),
            .int32(Int32(Limits.oplogsLookedAt)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            var conversations: [Conversation] = []
            try rows.forEachRow { columns throws(PostgresError) in
                let name = try columns.next(String.self)
                if conversations.last?.name.isSame(as: name) != true { conversations.append(Conversation(name: name)) }
                if let waiting = try columns.next(Int?.self) {
                    let targeting = try OplogStore.targeting(&columns)
                    conversations[conversations.count - 1].waiting[targeting] = waiting
                } else {
                    columns.skipRest()
                }
            }
            return conversations
        }
    }

    /// A channel and a receiver whose state is requested.
    package struct Place: Sendable {
        package var channelID: Int64
        /// Nil, like the store, where the channel has one sync point for its user or device.
        package var deviceID: DeviceID?
        package var storeID: StoreID?
        /// Set only for global data for users.
        package var userID: UserID?
        /// The receiver's acknowledged position; the store's record may be older.
        package var stored: OplogID
        /// For a single-device channel: the device that must be the owner.
        package var onlyOwner: DeviceID?

        package init(
            channelID: Int64, deviceID: DeviceID?, storeID: StoreID?, userID: UserID? = nil, stored: OplogID,
            onlyOwner: DeviceID?
        ) {
            self.channelID = channelID
            self.deviceID = deviceID
            self.storeID = storeID
            self.userID = userID
            self.stored = stored
            self.onlyOwner = onlyOwner
        }
    }

    /// The state of a channel for a receiver.
    package struct ReceiverState: Sendable {
        package var head = OplogID.zero
        package var syncPoint = OplogID.zero
        /// Another device is the user's owner now.
        package var isForAnother = false
        /// The number of oplogs above the sync point, by targeting; among the newest `Limits.oplogsLookedAt`.
        package var waiting: [Targeting: Int] = [:]

        package init() {}
    }

    /// One state for each place, in the order of the places.
    package static func states(of places: [Place]) -> Query<[ReceiverState]> {
        let sql = """
            SELECT i.ordinal, c.head, p.upto, i.owner <> '' AND i.owner IS DISTINCT FROM w.device_id,
                g.waiting, g.operating_system, g.minimum_version, g.maximum_version, g.share_start, g.share_size
            FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $7::text[])
                WITH ORDINALITY AS i (channel_id, device_id, store_id, stored, owner, user_id, ordinal)
            JOIN channel c ON c.channel_id = i.channel_id
            JOIN sync_configuration f ON f.instance_id = c.instance_id AND f.biz_type = c.biz_type
            LEFT JOIN owner w ON i.owner <> '' AND w.instance_id = c.instance_id AND w.user_id = c.target
            CROSS JOIN LATERAL (
                SELECT greatest(i.stored, CASE WHEN i.device_id <> '' THEN (
                    SELECT s.oplog_id FROM sync_point s
                    WHERE s.channel_id = i.channel_id AND s.device_id = i.device_id AND s.store_id = i.store_id
                        AND s.user_id = i.user_id)
                ELSE (SELECT max(s.oplog_id) FROM sync_point s WHERE s.channel_id = i.channel_id) END) AS upto
            ) p
            LEFT JOIN LATERAL (
                SELECT r.operating_system, r.minimum_version, r.maximum_version, r.share_start, r.share_size,
                    count(*) AS waiting
                FROM (
                    SELECT \(OplogStore.targetingColumns),
                        \(isOffered) AND o.created_at >= f.data_since AS is_offered
                    FROM oplog o WHERE o.channel_id = i.channel_id AND o.oplog_id > p.upto
                    ORDER BY o.oplog_id DESC LIMIT $6
                ) r
                WHERE r.is_offered GROUP BY 1, 2, 3, 4, 5
            ) g ON true
            ORDER BY i.ordinal
            """
        let parameters: [PostgresValue] = [
            .int64Array(places.map(\.channelID)), .textArray(places.map { $0.deviceID?.text ?? "" }),
            .textArray(places.map { $0.storeID?.text ?? "" }), .int64Array(places.map(\.stored.value)),
            .textArray(places.map { $0.onlyOwner?.text ?? "" }), .int32(Int32(Limits.oplogsLookedAt)),
            .textArray(places.map { $0.userID?.text ?? "" }),
        ]
        let count = places.count
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            var states = [ReceiverState](repeating: ReceiverState(), count: count)
            try rows.forEachRow { columns throws(PostgresError) in
                let index = try columns.next(Int.self) - 1
                states[index].head = try columns.next()
                states[index].syncPoint = try columns.next()
                states[index].isForAnother = try columns.next()
                if let waiting = try columns.next(Int?.self) {
                    states[index].waiting[try OplogStore.targeting(&columns)] = waiting
                } else {
                    columns.skipRest()
                }
            }
            return states
        }
    }
}
