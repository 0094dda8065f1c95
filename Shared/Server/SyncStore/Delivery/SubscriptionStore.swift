package import PostgreSQL
package import SyncModel

/// Parameter values of users, and the filters that decided the oplogs for each receiver.
package enum SubscriptionStore {
    private static let limit = Duration.seconds(10)
    private static let begin = PostgresStatement("BEGIN")
    private static let commit = PostgresStatement("COMMIT")
    /// Oplogs that one query reads.
    private static let turn = 4_096
    /// The reason of a re-read in its row.
    private static let reason = "parameter"

    // MARK: Values of users

    /// The stored values of a user.
    ///
    /// - Parameter store: the store of the user.
    package static func userParameters(
        of userID: UserID, in instanceID: InstanceID, _ store: StoreSchema
    ) -> Query<[DeviceParameter]> {
        let sql = """
            SELECT value, biz_type, name FROM \(store.prefix)user_parameter WHERE instance_id = $1 AND user_id = $2
            """
        return Query(PostgresStatement(sql, [.text(instanceID.text), .text(userID.text)])) {
            rows throws(PostgresError) in
            try rows.compactDecode { columns throws(PostgresError) -> DeviceParameter? in
                guard let value = SubscriptionValue(json: try columns.next()) else { return nil }
                return try DeviceParameter(bizType: columns.next(), name: columns.next(), value: value)
            }
        }
    }

    /// Stores values of a user, or removes those without a value, all or none of them. Each name is in the list once.
    ///
    /// - Parameter store: the store of the user.
    package static func store(
        _ parameters: [DeviceParameter], of userID: UserID, in instanceID: InstanceID, _ store: StoreSchema = .every
    ) -> Query<Void> {
        let sql = """
            WITH given AS (
                SELECT * FROM unnest($3::text[], $4::text[], $5::text[]) AS g (biz_type, name, value)
            ), gone AS (
                DELETE FROM \(store.prefix)user_parameter p USING given g
                WHERE p.instance_id = $1 AND p.user_id = $2 AND p.biz_type = g.biz_type AND p.name = g.name
                    AND g.value = ''
            )
            INSERT INTO \(store.prefix)user_parameter (instance_id, user_id, biz_type, name, value)
            SELECT $1, $2, g.biz_type, g.name, g.value FROM given g WHERE g.value <> ''
            ON CONFLICT (instance_id, user_id, biz_type, name) DO UPDATE SET value = excluded.value
            """
        let values: [PostgresValue] = [
            .text(instanceID.text), .text(userID.text), .textArray(parameters.map(\.bizType.text)),
            .textArray(parameters.map(\.name)), .textArray(parameters.map { $0.value?.json ?? "" }),
        ]
        return Query(PostgresStatement(sql, values)) { _ in }
    }

    /// The gateways that have sessions of a user.
    package static func gateways(of userID: UserID, in instanceID: InstanceID) -> Query<[String]> {
        let sql = """
            SELECT DISTINCT s.gateway_id FROM device_session s
            WHERE s.instance_id = $1 AND s.user_id = $2 AND s.user_id <> ''
            """
        return Query(PostgresStatement(sql, [.text(instanceID.text), .text(userID.text)])) {
            rows throws(PostgresError) in
            try rows.decode(String.self)
        }
    }

    // MARK: Filters of receivers

    /// The filters of a session from now on.
    package struct AppliedFilters: Sendable {
        /// By channel.
        package var filters: [Int64: FilterHistory] = [:]
        package var userParameters: [DeviceParameter] = []
        /// Sync IDs whose change was refused, because of `Limits.filterSegments`.
        package var refused: [BizType] = []
    }

    /// A filtered channel of a session.
    private struct Place {
        var store: StoreSchema
        var channelID: Int64
        var bizType: BizType
        var head: OplogID
        var subscription: SubscriptionText
        var isPerStore: Bool
        /// For a single-device channel: this device is the owner, so the session's values count.
        var isOwned: Bool
        /// The receiver has a sync point.
        var isKnown: Bool
        var stored: OplogID
        var oldest: OplogID?
        var kind: ChannelKind
    }

    /// Applies the filters of a session that was just registered, and creates re-reads of older oplogs that only a
    /// changed filter lets through (ENT8). A repeat changes nothing. A nil value means: another connection has
    /// replaced the session.
    ///
    /// One transaction for each store with channels of the session: after a failure, the caller repeats all of them. A
    /// change reads up to `Limits.filterRereadOplogs` oplogs of its channel, in several queries; without a change there
    /// are three round trips for each store.
    ///
    /// - Parameter reads: statements that run after the last commit, in its round trip.
    /// - Returns: the filters, and the rows of the statements.
    package static func applyFilters(
        of session: DeviceSessionStore.Registration, connectionEpoch: Int64, in stores: StoreLayout,
        then reads: [PostgresStatement], on connection: PostgresConnection
    ) throws(PostgresError) -> (applied: AppliedFilters, rows: [PostgresRows])? {
        var applied = AppliedFilters()
        // Before the transactions, because it may be in another store. A later change makes the gateways request the
        // filters again.
        let ofUser = session.userID.map {
            userParameters(of: $0, in: session.instanceID, stores.store(of: $0, in: session.instanceID))
        }
        let stores = stores.stores(of: session.deviceID, session.userID, in: session.instanceID)
        var (rows, hasPlaces) = ([PostgresRows](), false)
        for (index, store) in stores.enumerated() {
            let places = places(of: session, connectionEpoch: connectionEpoch, in: store)
            let before = index == 0 ? ofUser : nil
            let after = index == stores.count - 1 ? reads : []
            do throws(PostgresError) {
                var results = try run([before?.statement, begin, places.statement].compactMap(\.self), on: connection)
                if let before { applied.userParameters = try before.decode(results.removeFirst()) }
                let found = try places.decode(results[1])
                try apply(found, of: session, &applied, on: connection)
                rows = try Array(run([commit] + after, on: connection).dropFirst())
                hasPlaces = hasPlaces || !found.isEmpty
            } catch {
                // After any answer to the last statement the transaction must not stay open: its locks would block
                // others, and later statements on this connection would be part of it. Closing rolls back.
                connection.close()
                throw error
            }
        }
        return hasPlaces ? (applied, rows) : nil
    }

    /// Runs statements in one round trip.
    ///
    /// - Throws: the error of the first statement that failed.
    private static func run(
        _ statements: [PostgresStatement], on connection: PostgresConnection
    ) throws(PostgresError) -> [PostgresRows] {
        var rows: [PostgresRows] = []
        for result in try connection.run(statements, within: limit) { rows.append(try result.get()) }
        return rows
    }

    /// Applies the filters of one store, in its transaction.
    private static func apply(
        _ places: [Place], of session: DeviceSessionStore.Registration, _ applied: inout AppliedFilters,
        on connection: PostgresConnection
    ) throws(PostgresError) {
        let queries = places.map { segments(of: $0, session) }
        let rows = try run(queries.map(\.statement), on: connection)
        for (index, place) in places.enumerated() {
            let known = try queries[index].decode(rows[index])
            var history = FilterHistory(segments: known)
            guard place.isOwned else {
                applied.filters[place.channelID] = history
                continue
            }
            // A filter that cannot be read was refused when it was saved.
            let rules = try? SubscriptionRules(place.subscription)
            let filter = rules?.resolved(
                device: session.parameters.values(of: place.bizType),
                user: applied.userParameters.values(of: place.bizType))
            let opens = session.opensBind || session.takesOwnership
            let isContinuing = session.connectionEpoch > 0 && !(place.kind.needsUser && opens)
            let change = history.adopt(
                filter ?? .everything, head: place.head, isKnown: place.isKnown || isContinuing, stored: place.stored,
                oldest: place.oldest)
            if change == .refused { applied.refused.append(place.bizType) }
            if history.segments != known { try replace(history, of: place, session, on: connection) }
            if known.isEmpty || !place.isPerStore { try moveRereads(of: place, session, on: connection) }
            if change == .made { try addRereads(of: place, session, history, on: connection) }
            applied.filters[place.channelID] = history.flowing(above: place.stored)
        }
    }

    private static func places(
        of session: DeviceSessionStore.Registration, connectionEpoch: Int64, in store: StoreSchema
    ) -> Query<[Place]> {
        let sql = """
            SELECT kind, channel_id, biz_type, head, filter, attributes, parameters, is_per_store, is_owned, is_known,
                stored, oldest
            FROM \(store.prefix)open_subscriptions($1, $2, $3, $4, $5, $6, $7)
            """
        let parameters: [PostgresValue] = [
            .text(session.instanceID.text), .text(session.deviceID.text), .text(session.storeID.text),
            .text(session.userID?.text ?? ""), .int64(connectionEpoch),
            .int64(Int64(clamping: session.registrationNumber)), .textArray(session.filtered.map(\.text)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.compactDecode { columns throws(PostgresError) -> Place? in
                guard let kind = ChannelKind(rawValue: try columns.next()) else { return nil }
                return try Place(
                    store: store, channelID: columns.next(), bizType: columns.next(), head: columns.next(),
                    subscription: SubscriptionText(
                        filter: columns.next(), attributes: columns.next(), parameters: columns.next()),
                    isPerStore: columns.next(), isOwned: columns.next(), isKnown: columns.next(),
                    stored: columns.next(), oldest: columns.next(), kind: kind)
            }
        }
    }

    /// The receiver of the filters, as parameters of a statement.
    private static func receiver(of place: Place, _ session: DeviceSessionStore.Registration) -> [PostgresValue] {
        [
            .int64(place.channelID), .text(place.isPerStore ? session.deviceID.text : ""),
            .text(place.isPerStore ? session.storeID.text : ""),
            .text(place.kind == .globalUser ? session.userID?.text ?? "" : ""),
        ]
    }

    /// The filters since the present configuration was created; older ones belong to a deleted configuration.
    private static func segments(
        of place: Place, _ session: DeviceSessionStore.Registration
    ) -> Query<[FilterHistory.Segment]> {
        let sql = """
            SELECT s.number, s.filter, s.upto FROM \(place.store.prefix)subscription_segment s
            WHERE s.channel_id = $1 AND s.device_id = $2 AND s.store_id = $3 AND s.user_id = $4 AND s.since >= (
                SELECT f.data_since FROM \(place.store.prefix)channel c
                JOIN sync_configuration f ON f.instance_id = c.instance_id AND f.biz_type = c.biz_type
                WHERE c.channel_id = $1)
            ORDER BY s.number
            """
        return Query(PostgresStatement(sql, receiver(of: place, session))) { rows throws(PostgresError) in
            try rows.decode { columns throws(PostgresError) in
                try FilterHistory.Segment(
                    number: columns.next(), filter: ResolvedFilter(text: columns.next()) ?? .everything,
                    upto: columns.next())
            }
        }
    }

    private static func replace(
        _ history: FilterHistory, of place: Place, _ session: DeviceSessionStore.Registration,
        on connection: PostgresConnection
    ) throws(PostgresError) {
        let receiver = receiver(of: place, session)
        let removal = PostgresStatement(
            """
            DELETE FROM \(place.store.prefix)subscription_segment
            WHERE channel_id = $1 AND device_id = $2 AND store_id = $3 AND user_id = $4
            """, receiver)
        let addition = PostgresStatement(
            """
            INSERT INTO \(place.store.prefix)subscription_segment (
                channel_id, device_id, store_id, user_id, number, filter, upto)
            SELECT $1, $2, $3, $4, s.number, s.filter, nullif(s.upto, -1)
            FROM unnest($5::integer[], $6::text[], $7::bigint[]) AS s (number, filter, upto)
            """,
            receiver + [
                .int32Array(history.segments.map { Int32($0.number) }),
                .textArray(history.segments.map(\.filter.text)),
                .int64Array(history.segments.map { $0.upto?.value ?? -1 }),
            ])
        _ = try run([removal, addition], on: connection)
    }

    /// Closes re-reads for another store, because a new store is sent by its own filter, or moves re-reads of another
    /// owner, because the user's one sync point belongs to the present owner.
    private static func moveRereads(
        of place: Place, _ session: DeviceSessionStore.Registration, on connection: PostgresConnection
    ) throws(PostgresError) {
        let sql =
            place.isPerStore
            ? """
            UPDATE \(place.store.prefix)reread SET done_at = clock_timestamp()
            WHERE channel_id = $1 AND device_id = $2 AND reason = $3 AND done_at IS NULL AND $4 IN ('', user_id)
            """
            : """
            UPDATE \(place.store.prefix)reread SET device_id = $2
            WHERE channel_id = $1 AND device_id <> $2 AND reason = $3 AND done_at IS NULL AND $4 IN ('', user_id)
            """
        let parameters: [PostgresValue] = [
            .int64(place.channelID), .text(session.deviceID.text), .text(reason),
            .text(place.kind == .globalUser ? session.userID?.text ?? "" : ""),
        ]
        _ = try connection.run(PostgresStatement(sql, parameters), within: limit)
    }

    /// An oplog that may be for the receiver.
    private struct Candidate: Sendable {
        var id: OplogID
        var targeting: Targeting
        var attributes: String
    }

    /// Creates re-reads of oplogs that the present filter lets through and no earlier filter did.
    private static func addRereads(
        of place: Place, _ session: DeviceSessionStore.Registration, _ history: FilterHistory,
        on connection: PostgresConnection
    ) throws(PostgresError) {
        guard let filter = history.current else { return }
        var below = OplogID(place.head.value + 1)
        var lookedAt = 0
        var wanted: [OplogID] = []
        while lookedAt < Limits.filterRereadOplogs {
            let candidates = try connection.run(candidates(of: place, below: below), within: limit)
            wanted += candidates.filter { candidate in
                candidate.targeting.exclusion(of: session.traits) == nil
                    && filter.matches(attributes: candidate.attributes)
                    && !history.isDelivered(candidate.id, attributes: candidate.attributes)
            }.map(\.id)
            lookedAt += candidates.count
            guard candidates.count == turn, let last = candidates.last else { break }
            below = last.id
        }
        guard !wanted.isEmpty else { return }
        let sql = """
            INSERT INTO \(place.store.prefix)reread (channel_id, device_id, user_id, oplog_id, reason, actor)
            SELECT $1, $2, $3, w, $4, '' FROM unnest($5::bigint[]) AS w ORDER BY w
            """
        let parameters: [PostgresValue] = [
            .int64(place.channelID), .text(session.deviceID.text), .text(session.userID?.text ?? ""), .text(reason),
            .int64Array(wanted.map(\.value)),
        ]
        _ = try connection.run(PostgresStatement(sql, parameters), within: limit)
    }

    /// Valid, stored oplogs below an id, newest first.
    private static func candidates(of place: Place, below: OplogID) -> Query<[Candidate]> {
        let sql = """
            SELECT o.oplog_id, \(OplogStore.targetingColumns), coalesce(o.attributes, '')
            FROM \(place.store.prefix)oplog o
            WHERE o.channel_id = $1 AND o.oplog_id < $2 AND o.payload IS NOT NULL AND o.recalls IS NULL
                AND o.valid_until > now() AND \(OplogStore.isOfConfiguration(in: place.store))
            ORDER BY o.oplog_id DESC LIMIT $3
            """
        let parameters: [PostgresValue] = [.int64(place.channelID), .int64(below.value), .int32(Int32(turn))]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.decode { columns throws(PostgresError) in
                try Candidate(
                    id: columns.next(), targeting: OplogStore.targeting(&columns), attributes: columns.next())
            }
        }
    }
}
