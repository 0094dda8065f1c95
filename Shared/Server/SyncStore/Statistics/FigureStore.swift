import PostgreSQL
package import SyncModel

/// Reads the figures of the statistics aggregator for the console (C1, C7, S2). Days are UTC days, and every answer is
/// bounded.
package enum FigureStore {
    /// The days of the data query: today and those before (C7).
    package static let days = 30
    /// The days for which the record of single pushes is kept.
    package static let recordDays = 35
    /// The largest number of steps in one answer; later ones are left out.
    package static let stepsMax = 1_500
    /// The largest number of pushes on one page.
    package static let pageMax = 200
    /// The largest number of device kinds in one answer.
    package static let traitsMax = 500

    private static let firstDay = "(now() AT TIME ZONE 'UTC')::date - \(days - 1)"

    // MARK: A user or a device

    /// The figures of a user or a device.
    ///
    /// - Parameter target: of kind user or device.
    package static func figures(of target: TargetAddress) -> Query<Figures> {
        let sql = """
            SELECT coalesce(sum(d.pushes), 0)::bigint, coalesce(sum(d.arrivals), 0)::bigint
            FROM statistics_target t JOIN statistics_target_day d ON d.target_id = t.target_id
            WHERE t.instance_id = $1 AND t.kind = $2 AND t.target = $3 AND d.day >= \(firstDay)
            """
        return Query(PostgresStatement(sql, key(of: target))) { rows throws(PostgresError) in
            try rows.first { columns throws(PostgresError) in
                try Figures(pushes: columns.next(), arrivals: columns.next())
            } ?? Figures(pushes: 0, arrivals: 0)
        }
    }

    /// The pushes of the last 30 days, newest first.
    ///
    /// - Parameters:
    ///   - target: of kind user or device.
    ///   - cursor: of the last line of the former page; nil: from the newest.
    package static func pushes(
        of target: TargetAddress, before cursor: PushCursor? = nil, limit: Int
    ) -> Query<[Push]> {
        let sql = """
            SELECT c.kind, p.channel_id, p.oplog_id, \(milliseconds("p.noted_at")), c.biz_type,
                \(milliseconds("p.handed_out_at")), \(milliseconds("p.confirmed_at"))
            FROM (
                (SELECT s.channel_id, s.oplog_id, s.noted_at, s.first_handed_out_at AS handed_out_at,
                    s.first_confirmed_at AS confirmed_at
                FROM statistics_oplog s
                WHERE s.target_id = \(targetID) AND s.counts AND \(page("s.noted_at", of: "s"))
                ORDER BY s.noted_at DESC, s.channel_id DESC, s.oplog_id DESC LIMIT $7)
                UNION ALL
                (SELECT s.channel_id, s.oplog_id, s.handed_out_at, s.handed_out_at, s.confirmed_at
                FROM statistics_pull s
                WHERE s.target_id = \(targetID) AND \(page("s.handed_out_at", of: "s"))
                ORDER BY s.handed_out_at DESC, s.channel_id DESC, s.oplog_id DESC LIMIT $7)
            ) p
            JOIN statistics_channel c ON c.channel_id = p.channel_id
            ORDER BY p.noted_at DESC, p.channel_id DESC, p.oplog_id DESC LIMIT $7
            """
        let from = cursor ?? .newest
        let parameters: [PostgresValue] =
            key(of: target) + [
                .int64(from.at.milliseconds), .int64(from.channelID), .int64(from.oplogID.value),
                .int32(Int32(min(max(limit, 0), pageMax))),
            ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in try rows.compactDecode(push) }
    }

    /// The devices on which a user pulled a global push, in the order of their ids.
    ///
    /// - Parameter limit: the largest number of devices.
    package static func devices(
        of target: TargetAddress, thatPulled oplogID: OplogID, of bizType: BizType, limit: Int
    ) -> Query<[DeviceID]> {
        let sql = """
            SELECT l.device_id FROM statistics_channel c JOIN statistics_delivery l ON l.channel_id = c.channel_id
            WHERE c.instance_id = $1 AND c.kind = \(ChannelKind.globalUser.rawValue) AND c.biz_type = $4
                AND l.oplog_id = $5 AND l.target_id = \(targetID)
            ORDER BY l.device_id LIMIT $6
            """
        let parameters = key(of: target) + [.text(bizType.text), .int64(oplogID.value), .int32(Int32(limit))]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.decode(DeviceID.self)
        }
    }

    private static let targetID =
        "(SELECT t.target_id FROM statistics_target t WHERE t.instance_id = $1 AND t.kind = $2 AND t.target = $3)"

    private static func page(_ time: String, of table: String) -> String {
        """
        \(time) >= (\(firstDay))::timestamp AT TIME ZONE 'UTC' AND \(time) <= to_timestamp($4::bigint / 1000.0)
            AND (\(time), \(table).channel_id, \(table).oplog_id)
                < (to_timestamp($4::bigint / 1000.0), $5::bigint, $6::bigint)
        """
    }

    private static func push(_ columns: inout PostgresColumns) throws(PostgresError) -> Push? {
        guard let kind = ChannelKind(rawValue: try columns.next()) else { return nil }
        let channelID = try columns.next(Int64.self)
        let oplogID = try columns.next(OplogID.self)
        let notedAt = try columns.next(WallTime.self)
        return try Push(
            bizType: columns.next(), kind: kind, oplogID: oplogID, notedAt: notedAt,
            firstHandedOutAt: columns.next(), arrivedAt: columns.next(),
            cursor: PushCursor(at: notedAt, channelID: channelID, oplogID: oplogID))
    }

    private static func key(of target: TargetAddress) -> [PostgresValue] {
        [.text(target.instanceID.text), .int16(target.kind.rawValue), .text(target.target)]
    }

    // MARK: Days

    /// The days that have figures, the oldest first; figures are kept for 400 days.
    ///
    /// - Parameters:
    ///   - bizType: nil: all Sync IDs.
    ///   - from: a time on the first day.
    ///   - to: a time on the last day.
    package static func days(
        of instanceID: InstanceID, bizType: BizType? = nil, from: WallTime, to: WallTime
    ) -> Query<[Day]> {
        let sql = """
            SELECT \(milliseconds("d.day::timestamp AT TIME ZONE 'UTC'")), sum(d.pushes)::bigint,
                sum(d.arrivals)::bigint, sum(d.dead_letters)::bigint
            FROM statistics_day d
            WHERE \(inDays("d", bizType))
            GROUP BY d.day ORDER BY d.day
            """
        return Query(PostgresStatement(sql, range(instanceID, from, to, bizType))) { rows throws(PostgresError) in
            try rows.decode { columns throws(PostgresError) in
                try Day(
                    day: columns.next(), pushes: columns.next(), arrivals: columns.next(),
                    deadLetters: columns.next())
            }
        }
    }

    /// The kinds of devices that an instance's pushes were handed out to on these days, the most frequent first;
    /// parameters as in `days`.
    package static func traits(
        of instanceID: InstanceID, bizType: BizType? = nil, from: WallTime, to: WallTime
    ) -> Query<[Traits]> {
        let sql = """
            SELECT d.operating_system, d.app_version, sum(d.handed_out)::bigint, sum(d.confirmed)::bigint
            FROM statistics_day_traits d
            WHERE \(inDays("d", bizType))
            GROUP BY d.operating_system, d.app_version ORDER BY 3 DESC, 1, 2 LIMIT \(traitsMax)
            """
        return Query(PostgresStatement(sql, range(instanceID, from, to, bizType))) { rows throws(PostgresError) in
            try rows.decode { columns throws(PostgresError) in
                try Traits(
                    operatingSystem: OperatingSystem(rawValue: columns.next()), appVersion: columns.next(),
                    handedOut: columns.next(), confirmed: columns.next())
            }
        }
    }

    private static func inDays(_ table: String, _ bizType: BizType?) -> String {
        """
        \(table).instance_id = $1 AND \(table).day >= (to_timestamp($2::bigint / 1000.0) AT TIME ZONE 'UTC')::date
            AND \(table).day <= (to_timestamp($3::bigint / 1000.0) AT TIME ZONE 'UTC')::date
            \(bizType == nil ? "" : "AND \(table).biz_type = $4")
        """
    }

    private static func range(
        _ instanceID: InstanceID, _ from: WallTime, _ to: WallTime, _ bizType: BizType?
    ) -> [PostgresValue] {
        let range: [PostgresValue] = [
            .text(instanceID.text), .int64(from.milliseconds), .int64(to.milliseconds),
        ]
        return range + (bizType.map { [.text($0.text)] } ?? [])
    }

    /// Dead letters of the days whose record is still kept.
    package static func deadLetters(of instanceID: InstanceID) -> Query<Int64> {
        let sql = """
            SELECT coalesce(sum(d.dead_letters), 0)::bigint FROM statistics_day d
            WHERE d.instance_id = $1 AND d.day > (now() AT TIME ZONE 'UTC')::date - \(recordDays)
            """
        return Query(PostgresStatement(sql, [.text(instanceID.text)])) { rows throws(PostgresError) in
            try rows.first(Int64.self) ?? 0
        }
    }

    // MARK: Minutes

    /// Pushes and arrivals by step, the oldest first; empty steps are left out. Kept for 35 days.
    ///
    /// - Parameters:
    ///   - instanceID: nil: all instances.
    ///   - from: the begin of the first step, which is the begin of a minute.
    ///   - to: the end of the last step.
    ///   - step: whole minutes.
    package static func minutes(
        of instanceID: InstanceID?, from: WallTime, to: WallTime, step: Duration
    ) -> Query<[Step]> {
        let hour: Int64 = 3_600_000
        let isByHours = from.milliseconds % hour == 0 && step.wholeMilliseconds % hour == 0 && step > .zero
        let rows = "span_minutes = \(isByHours ? 60 : 1) AND \(within("begins_at", instanceID))"
        let sql = """
            SELECT \(milliseconds("m.step")), m.bucket, m.count FROM (
                SELECT \(begin(of: "begins_at")) AS step, -1::smallint AS bucket, sum(pushes)::bigint AS count
                FROM statistics_accepted WHERE \(rows) GROUP BY 1
                UNION ALL
                SELECT \(begin(of: "begins_at")), bucket, sum(arrivals)::bigint
                FROM statistics_arrival WHERE \(rows) GROUP BY 1, 2
            ) m ORDER BY m.step, m.bucket
            """
        return Query(PostgresStatement(sql, steps(instanceID, from, to, step))) { rows throws(PostgresError) in
            var steps: [Step] = []
            try rows.forEachRow { columns throws(PostgresError) in
                let begin = try columns.next(WallTime.self)
                if steps.last?.begin != begin { steps.append(Step(begin: begin, pushes: 0, arrivals: ArrivalTimes())) }
                let bucket = try columns.next(Int.self)
                let count = try columns.next(Int64.self)
                if bucket < 0 {
                    steps[steps.count - 1].pushes = count
                } else {
                    steps[steps.count - 1].arrivals.add(count, bucket: bucket)
                }
            }
            return steps
        }
    }

    /// Connected devices by step, the oldest first; parameters as in `minutes`. A step without a gateway's report is
    /// left out.
    package static func connected(
        of instanceID: InstanceID?, from: WallTime, to: WallTime, step: Duration
    ) -> Query<[Connected]> {
        let sql = """
            SELECT \(milliseconds("m.step")), max(m.devices)::bigint
            FROM (
                SELECT \(begin(of: "minute")) AS step, sum(devices) AS devices
                FROM statistics_connected WHERE \(within("minute", instanceID)) GROUP BY minute
            ) m GROUP BY m.step ORDER BY m.step
            """
        return Query(PostgresStatement(sql, steps(instanceID, from, to, step))) { rows throws(PostgresError) in
            try rows.decode { columns throws(PostgresError) in
                try Connected(begin: columns.next(), devices: columns.next())
            }
        }
    }

    private static func begin(of time: String) -> String {
        // In subqueries they are evaluated once, not for each row.
        "date_bin((SELECT make_interval(secs => $3)), \(time), (SELECT to_timestamp($1::bigint / 1000.0)))"
    }

    private static func within(_ time: String, _ instanceID: InstanceID?) -> String {
        """
        \(time) >= to_timestamp($1::bigint / 1000.0) AND \(time) < to_timestamp($2::bigint / 1000.0)
            \(instanceID == nil ? "" : "AND instance_id = $4")
        """
    }

    private static func steps(
        _ instanceID: InstanceID?, _ from: WallTime, _ to: WallTime, _ step: Duration
    ) -> [PostgresValue] {
        let minutes = max(1, step.wholeMilliseconds / 60_000)
        let end = min(to.milliseconds, from.milliseconds + minutes * 60_000 * Int64(stepsMax))
        let parameters: [PostgresValue] = [
            .int64(from.milliseconds), .int64(end), .int64(minutes * 60),
        ]
        return parameters + (instanceID.map { [.text($0.text)] } ?? [])
    }

    // MARK: Progress of the figures

    /// Facts and acceptances from before this time are in the figures; nil: no aggregator has run yet.
    package static let foldedUntil = Query(
        PostgresStatement("SELECT \(milliseconds("folded_until")) FROM statistics_progress")
    ) { rows throws(PostgresError) -> WallTime? in
        guard let found = try rows.first(WallTime.self), found.milliseconds > 0 else { return nil }
        return found
    }

    private static func milliseconds(_ time: String) -> String { "floor(extract(epoch FROM \(time)) * 1000)::bigint" }
}
