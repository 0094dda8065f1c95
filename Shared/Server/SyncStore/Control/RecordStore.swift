import PostgreSQL
package import SyncModel

/// Audit records: the actions of operators, chained by hashes (C9, SEC15). Changes of control data write their own.
package enum RecordStore {
    /// The largest number of records on one page.
    package static let pageMax = 200
    /// For a list without a time: the days that it covers, and its largest number of records (C9).
    private static let (recentDays, recentMax) = (7, Int64(1_000))

    /// Writes a separate record; returns its number.
    package static func add(_ entry: OperationEntry) -> Query<Int64> {
        let sql = "SELECT record_operation($1, $2, $3, $4, $5::text::jsonb, $6::text::jsonb)"
        let parameters: [PostgresValue] = [
            entry.actor.value, .int16(entry.action.rawValue), .text(entry.instanceID?.text ?? ""),
            .text(entry.subject), PostgresValue(entry.before, PostgresValue.text),
            PostgresValue(entry.after, PostgresValue.text),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in try rows.first(Int64.self) ?? 0
        }
    }

    /// The days for which the content of an operator's push is kept beside its record.
    package static let contentDays: Int32 = 180
    /// The largest number of contents that one statement erases.
    private static let contentsForgotten: Int32 = 10_000

    /// A push that an operator is about to make.
    package struct Push: Sendable {
        package var bizType: BizType
        /// Empty: a global push.
        package var target: String
        package var thirdMessageID: ThirdMessageID
        package var payload: [UInt8]
        package var isBinary: Bool

        package init(
            bizType: BizType, target: String, thirdMessageID: ThirdMessageID, payload: [UInt8], isBinary: Bool
        ) {
            self.bizType = bizType
            self.target = target
            self.thirdMessageID = thirdMessageID
            self.payload = payload
            self.isBinary = isBinary
        }
    }

    /// Records a push with its content; returns the record's number.
    ///
    /// - Parameter members: the JSON of the record, without the content; the SHA-256 of the content is added.
    package static func add(
        _ push: Push, in instanceID: InstanceID, by actor: OperationActor, members: String
    ) -> Query<Int64> {
        let sql = "SELECT record_push($1, $2, $3, $4, $5, $6, $7, $8, $9::text::jsonb)"
        let parameters: [PostgresValue] = [
            actor.value, .int16(OperationAction.createSync.rawValue), .text(instanceID.text), .text(push.bizType.text),
            .text(push.target), .text(push.thirdMessageID.text), .bytes(push.payload), .bool(push.isBinary),
            .text(members),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in try rows.first(Int64.self) ?? 0
        }
    }

    /// The content of a push by its record; nil: it was erased, or the record is not of a push.
    package static func content(of number: Int64) -> Query<(payload: [UInt8], isBinary: Bool)?> {
        let sql = "SELECT c.payload, c.is_binary FROM record_content c WHERE c.number = $1"
        return Query(PostgresStatement(sql, [.int64(number)])) { rows throws(PostgresError) in
            try rows.first { columns throws(PostgresError) in
                (payload: try columns.next([UInt8].self), isBinary: try columns.next(Bool.self))
            }
        }
    }

    /// Erases contents whose time has ended.
    package static let forgetContents = Query(
        PostgresStatement("SELECT forget_record_contents($1, $2)", [.int32(contentDays), .int32(contentsForgotten)])
    ) { _ in () }

    /// One record; nil: there is none.
    package static func record(_ number: Int64) -> Query<OperationRecord?> {
        let sql = "SELECT \(columns) FROM operation_record r WHERE r.number = $1"
        return Query(PostgresStatement(sql, [.int64(number)])) { rows throws(PostgresError) in try rows.first(record) }
    }

    /// A page of the records that pass the filter, the newest first. Without a time in the filter the list covers the
    /// last 7 days, and at most 1,000 records in all, or of each actor where a part of a name matches several (C9).
    ///
    /// - Parameters:
    ///   - number: only records before this one, the last of the former page; nil: the first page.
    ///   - limit: the largest number of records, 1 to `pageMax`.
    package static func page(_ filter: RecordFilter, before number: Int64? = nil, limit: Int) -> Query<RecordPage> {
        let recent = filter.hasNoTime ? recentMax : nil
        return list(filter, before: number ?? .max, recentMax: recent, isNewestFirst: true, limit: limit)
    }

    /// A page of the records that pass the filter, the oldest first and of any age: for exports, and, with an empty
    /// filter, for `RecordChainVerifier`.
    ///
    /// - Parameters:
    ///   - number: only records after this one; 0: from the first on.
    ///   - limit: the largest number of records, 1 to `pageMax`.
    package static func oldest(
        _ filter: RecordFilter = RecordFilter(), after number: Int64, limit: Int
    ) -> Query<RecordPage> {
        list(filter, after: number, isNewestFirst: false, limit: limit)
    }

    /// The same statement reads the head, so that both belong to the same moment.
    private static func list(
        _ filter: RecordFilter, after: Int64 = 0, before: Int64 = .max, recentMax: Int64? = nil, isNewestFirst: Bool,
        limit: Int
    ) -> Query<RecordPage> {
        let limit = min(max(limit, 1), pageMax)
        let sql = """
            SELECT h.number, h.hash, \(columns)
            FROM record_head h LEFT JOIN LATERAL (
                SELECT l.* FROM (\(filter.actorPart == nil ? "SELECT $2::text" : actorsWithPart)) a (actor),
                LATERAL list_records(
                    $1::text, a.actor, $3::smallint,
                    CASE WHEN $8::bigint IS NULL THEN to_timestamp($4::bigint / 1000.0)
                        ELSE now() - interval '\(recentDays) days' END,
                    to_timestamp($5::bigint / 1000.0), $6, $7, $9, $8, $10
                ) l
                ORDER BY l.number \(isNewestFirst ? "DESC" : "ASC") LIMIT $10
            ) r ON true
            ORDER BY r.number \(isNewestFirst ? "DESC" : "ASC")
            """
        let parameters: [PostgresValue] = [
            .init(filter.instanceID?.text, PostgresValue.text),
            .init(filter.actorPart ?? filter.actor, PostgresValue.text),
            .init(filter.actionCode, PostgresValue.int16),
            .init(filter.from?.milliseconds, PostgresValue.int64), .init(filter.to?.milliseconds, PostgresValue.int64),
            .int64(after), .int64(before),
            .init(recentMax, PostgresValue.int64), .bool(isNewestFirst), .int64(Int64(limit + 1)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            var head = RecordHead(number: 0, hash: [])
            // Without a record there is one row with the head.
            let records = try rows.compactDecode { columns throws(PostgresError) -> OperationRecord? in
                head = try RecordHead(number: columns.next(), hash: columns.next())
                return columns.isNextNull ? nil : try record(&columns)
            }
            return RecordPage(records: Array(records.prefix(limit)), hasMore: records.count > limit, head: head)
        }
    }

    /// The records of all actors whose name has the part. The index leads from each name to the next one: actors are
    /// few, however many records there are.
    private static let actorsWithPart = """
        WITH RECURSIVE name AS (
            (SELECT o.actor FROM operation_record o ORDER BY o.actor LIMIT 1)
            UNION ALL
            SELECT (SELECT o.actor FROM operation_record o WHERE o.actor > n.actor ORDER BY o.actor LIMIT 1)
            FROM name n WHERE n.actor IS NOT NULL
        )
        SELECT n.actor FROM name n WHERE strpos(lower(n.actor), lower(one_line($2::text))) > 0
        """

    private static let columns = """
        r.number, floor(extract(epoch FROM r.recorded_at) * 1000000)::bigint, r.actor, r.source, r.action,
        r.instance_id, r.subject, r.before, r.after, r.previous_hash, r.hash
        """

    /// Reads `columns`.
    private static func record(_ columns: inout PostgresColumns) throws(PostgresError) -> OperationRecord {
        try OperationRecord(
            number: columns.next(), recordedAtMicroseconds: columns.next(), actor: columns.next(),
            source: columns.next(), actionCode: columns.next(), instanceID: columns.next(), subject: columns.next(),
            before: columns.next(), after: columns.next(), previousHash: columns.next(), hash: columns.next())
    }
}

extension OperationActor {
    /// The actor as the database's functions expect it.
    var value: PostgresValue { .textArray([name, source]) }
}

extension PostgresValue {
    /// A value, or null.
    fileprivate init<Value>(_ value: Value?, _ form: (Value) -> PostgresValue) { self = value.map(form) ?? .null }
}
