import PostgreSQL
package import SyncModel

/// Reads the figures that the statistics aggregator keeps, for the console (spec C1, C7, S2). Days are UTC's, and every
/// answer is bounded.
package enum FigureStore {
    /// How many days the data query speaks of: today and those before (spec C7).
    package static let days = 30
    /// How many days the record of single pushes reaches back.
    package static let recordDays = 35
    /// Steps of one answer at the most; what lies beyond them is left out.
    package static let stepsMax = 1_500
    /// Pushes on one page at the most.
    package static let pageMax = 200
    /// Kinds of devices in one answer at the most.
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
        return Query(PostgresStatement(sql, key(of: target))) { rows in
            Figures(pushes: rows.first?.int64(0) ?? 0, arrivals: rows.first?.int64(1) ?? 0)
        }
    }

    /// The pushes of the last 30 days, newest first.
    ///
    /// - Parameters:
    ///   - target: of kind user or device.
    ///   - cursor: of the last line before; nil: from the newest.
    package static func pushes(
        of target: TargetAddress, before cursor: PushCursor? = nil, limit: Int
    ) -> Query<[Push]> {
        let sql = """
            SELECT c.biz_type, c.kind, p.channel_id, p.oplog_id, \(milliseconds("p.noted_at")),
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
        return Query(PostgresStatement(sql, parameters)) { rows in rows.compactMap(push) }
    }

    /// The devices on which a user took a global push, in the order of their ids.
    ///
    /// - Parameter limit: devices at the most.
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
        return Query(PostgresStatement(sql, parameters)) { rows in rows.map { DeviceID($0.text(0)) } }
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

    private static func push(_ row: PostgresRow) -> Push? {
        guard let kind = ChannelKind(rawValue: row.int16(1)) else { return nil }
        let notedAt = WallTime(milliseconds: row.int64(4))
        return Push(
            bizType: BizType(row.text(0)), kind: kind, oplogID: OplogID(row.int64(3)), notedAt: notedAt,
            firstHandedOutAt: time(row, 5), arrivedAt: time(row, 6),
            cursor: PushCursor(at: notedAt, channelID: row.int64(2), oplogID: OplogID(row.int64(3))))
    }

    private static func key(of target: TargetAddress) -> [PostgresValue] {
        [.text(target.instanceID.text), .int16(target.kind.rawValue), .text(target.target)]
    }

    // MARK: Days

    /// The days that have figures, the oldest first; figures are kept for 400 days.
    ///
    /// - Parameters:
    ///   - bizType: nil: of all.
    ///   - from: a moment of the first day.
    ///   - to: a moment of the last day.
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
        return Query(PostgresStatement(sql, range(instanceID, from, to, bizType))) { rows in
            rows.map { row in
                Day(
                    day: WallTime(milliseconds: row.int64(0)), pushes: row.int64(1), arrivals: row.int64(2),
                    deadLetters: row.int64(3))
            }
        }
    }

    /// To which kinds of devices an instance's pushes went on these days, the most frequent first; parameters as of
    /// `days`.
    package static func traits(
        of instanceID: InstanceID, bizType: BizType? = nil, from: WallTime, to: WallTime
    ) -> Query<[Traits]> {
        let sql = """
            SELECT d.operating_system, d.app_version, sum(d.handed_out)::bigint, sum(d.confirmed)::bigint
            FROM statistics_day_traits d
            WHERE \(inDays("d", bizType))
            GROUP BY d.operating_system, d.app_version ORDER BY 3 DESC, 1, 2 LIMIT \(traitsMax)
            """
        return Query(PostgresStatement(sql, range(instanceID, from, to, bizType))) { rows in
            rows.map { row in
                Traits(
                    operatingSystem: OperatingSystem(rawValue: row.int16(0)), appVersion: row.text(1),
                    handedOut: row.int64(2), confirmed: row.int64(3))
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

    /// Dead letters of the days of which the record is still there.
    package static func deadLetters(of instanceID: InstanceID) -> Query<Int64> {
        let sql = """
            SELECT coalesce(sum(d.dead_letters), 0)::bigint FROM statistics_day d
            WHERE d.instance_id = $1 AND d.day > (now() AT TIME ZONE 'UTC')::date - \(recordDays)
            """
        return Query(PostgresStatement(sql, [.text(instanceID.text)])) { $0.first?.int64(0) ?? 0 }
    }

    // MARK: Minutes

    /// Pushes and arrivals, step by step, the oldest first; steps without any are left out. Kept for 35 days.
    ///
    /// - Parameters:
    ///   - instanceID: nil: of all.
    ///   - from: where the first step begins: the begin of a minute.
    ///   - to: where the last one ends.
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
        return Query(PostgresStatement(sql, steps(instanceID, from, to, step))) { rows in
            var steps: [Step] = []
            for row in rows {
                let begin = WallTime(milliseconds: row.int64(0))
                if steps.last?.begin != begin { steps.append(Step(begin: begin, pushes: 0, arrivals: ArrivalTimes())) }
                if row.int16(1) < 0 {
                    steps[steps.count - 1].pushes = row.int64(2)
                } else {
                    steps[steps.count - 1].arrivals.add(row.int64(2), bucket: Int(row.int16(1)))
                }
            }
            return steps
        }
    }

    /// Connected devices, step by step, the oldest first; parameters as of `minutes`. A step of which no gateway spoke
    /// is left out.
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
        return Query(PostgresStatement(sql, steps(instanceID, from, to, step))) { rows in
            rows.map { Connected(begin: WallTime(milliseconds: $0.int64(0)), devices: $0.int64(1)) }
        }
    }

    private static func begin(of time: String) -> String {
        // In subqueries they are worked out once, not for each row.
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

    // MARK: How far figures are

    /// Everything told before this moment is in the figures; nil: no aggregator has run yet.
    package static let foldedUntil = Query(
        PostgresStatement("SELECT \(milliseconds("folded_until")) FROM statistics_progress")
    ) { rows -> WallTime? in
        guard let found = rows.first?.int64(0), found > 0 else { return nil }
        return WallTime(milliseconds: found)
    }

    private static func milliseconds(_ time: String) -> String { "floor(extract(epoch FROM \(time)) * 1000)::bigint" }

    private static func time(_ row: PostgresRow, _ column: Int) -> WallTime? {
        row.isNull(column) ? nil : WallTime(milliseconds: row.int64(column))
    }
}
