import TestSupport
import Testing

/// The content of the statistics tables, in a fixed order, with names in place of numbers.
enum StatisticsContents {
    /// Clears all tables but the channels' names.
    static func clear(_ database: TestDatabase) async throws {
        try await database.execute(
            """
            TRUNCATE statistics_target, statistics_channel, statistics_oplog, statistics_delivery, statistics_pull,
                statistics_discarded, statistics_day, statistics_day_traits, statistics_target_day, statistics_accepted,
                statistics_arrival, statistics_connected
            """)
    }

    /// The records and the figures. The figures must be the sums of the records.
    static func all(in database: TestDatabase) async throws -> [[String?]] {
        var all = try await record(in: database)
        for (figure, columns, sum) in figures {
            let counted = try await database.rows(figure, columns: columns)
            let summed = try await database.rows(sum, columns: columns)
            #expect(counted == summed)
            all += counted
        }
        return all
    }

    private static func record(in database: TestDatabase) async throws -> [[String?]] {
        let oplogs = try await database.rows(
            """
            SELECT channel_id::text, oplog_id::text, noted_at::text, accepted_at::text, first_handed_out_at::text,
                first_confirmed_at::text, is_live::text, counts::text
            FROM statistics_oplog ORDER BY channel_id, oplog_id
            """, columns: 8)
        let deliveries = try await database.rows(
            """
            SELECT d.channel_id::text, d.oplog_id::text, d.device_id, d.handed_out_at::text, t.target,
                d.operating_system::text, d.app_version, d.attempts::text, d.skipped_at::text, d.skip_reason::text,
                d.confirmed_at::text, d.dead_at::text, d.dead_user
            FROM statistics_delivery d LEFT JOIN statistics_target t ON t.target_id = d.target_id
            ORDER BY d.channel_id, d.oplog_id, d.device_id
            """, columns: 13)
        let discarded = try await database.rows(
            """
            SELECT channel_id::text, device_id, after::text, upto::text, discarded_at::text
            FROM statistics_discarded ORDER BY 1, 2, 4
            """, columns: 5)
        let connected = try await database.rows(
            """
            SELECT instance_id, minute::text, gateway_id, devices::text FROM statistics_connected ORDER BY 1, 2, 3
            """, columns: 4)
        return oplogs + deliveries + discarded + connected
    }

    /// A figure, its columns, and the query that computes it from the records.
    private static let figures: [(String, Int, String)] = [
        (
            """
            SELECT instance_id, biz_type, day::text, pushes::text, arrivals::text, dead_letters::text
            FROM statistics_day WHERE pushes + arrivals + dead_letters <> 0 ORDER BY 1, 2, 3
            """, 6,
            """
            SELECT instance_id, biz_type, day::text, sum(pushes)::text, sum(arrivals)::text, sum(dead)::text
            FROM (
                SELECT channel_id, (accepted_at AT TIME ZONE 'UTC')::date, 1, (first_confirmed_at IS NOT NULL)::int, 0
                FROM statistics_oplog WHERE counts
                UNION ALL
                SELECT channel_id, (dead_at AT TIME ZONE 'UTC')::date, 0, 0, 1
                FROM statistics_delivery WHERE dead_at IS NOT NULL AND confirmed_at IS NULL
            ) d (channel_id, day, pushes, arrivals, dead)
            JOIN statistics_channel USING (channel_id) GROUP BY 1, 2, d.day ORDER BY 1, 2, 3
            """
        ),
        (
            """
            SELECT instance_id, biz_type, day::text, operating_system::text, app_version, handed_out::text,
                confirmed::text
            FROM statistics_day_traits WHERE handed_out <> 0 ORDER BY 1, 2, 3, 4, 5
            """, 7,
            """
            SELECT c.instance_id, c.biz_type, (d.handed_out_at AT TIME ZONE 'UTC')::date::text,
                d.operating_system::text, d.app_version, count(*)::text, count(d.confirmed_at)::text
            FROM statistics_delivery d JOIN statistics_channel c USING (channel_id)
            WHERE d.handed_out_at IS NOT NULL GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
            """
        ),
        (
            """
            SELECT t.kind::text, t.target, d.day::text, d.pushes::text, d.arrivals::text
            FROM statistics_target_day d JOIN statistics_target t USING (target_id)
            WHERE d.pushes <> 0 ORDER BY 1, 2, 3
            """, 5,
            """
            SELECT t.kind::text, t.target, d.day::text, count(*)::text, count(d.arrived)::text
            FROM (
                SELECT target_id, (accepted_at AT TIME ZONE 'UTC')::date, first_confirmed_at
                FROM statistics_oplog WHERE counts
                UNION ALL
                SELECT target_id, (min(handed_out_at) AT TIME ZONE 'UTC')::date, min(confirmed_at)
                FROM statistics_delivery WHERE target_id IS NOT NULL GROUP BY channel_id, oplog_id, target_id
            ) d (target_id, day, arrived)
            JOIN statistics_target t USING (target_id) GROUP BY 1, 2, d.day ORDER BY 1, 2, 3
            """
        ),
        (
            """
            SELECT instance_id, span_minutes::text, begins_at::text, pushes::text FROM statistics_accepted
            WHERE pushes <> 0 ORDER BY 1, span_minutes, 3
            """, 4,
            """
            SELECT instance_id, minutes::text, date_trunc(unit, accepted_at, 'UTC')::text, count(*)::text
            FROM statistics_oplog JOIN statistics_channel USING (channel_id)
            CROSS JOIN (VALUES (1, 'minute'), (60, 'hour')) AS s (minutes, unit)
            WHERE counts GROUP BY 1, minutes, 3 ORDER BY 1, minutes, 3
            """
        ),
        (
            """
            SELECT instance_id, span_minutes::text, begins_at::text, sum(arrivals)::text
            FROM statistics_arrival GROUP BY 1, span_minutes, 3 HAVING sum(arrivals) <> 0 ORDER BY 1, span_minutes, 3
            """, 4,
            """
            SELECT instance_id, minutes::text, date_trunc(unit, first_confirmed_at, 'UTC')::text, count(*)::text
            FROM statistics_oplog JOIN statistics_channel USING (channel_id)
            CROSS JOIN (VALUES (1, 'minute'), (60, 'hour')) AS s (minutes, unit)
            WHERE counts AND first_confirmed_at IS NOT NULL GROUP BY 1, minutes, 3 ORDER BY 1, minutes, 3
            """
        ),
    ]
}
