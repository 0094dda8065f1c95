import PostgreSQL
package import SyncModel

/// The delivery record and the figures of pushes; the statistics aggregator is their only writer.
package enum StatisticsStore {
    /// Folds a batch in one transaction; a repeated fold changes nothing.
    package static func fold(_ batch: StatisticsBatch) -> Query<Void> {
        let parameters =
            [.int64Array(batch.channels.sorted())] + oplogs(of: batch) + deliveries(of: batch) + discarded(of: batch)
            + connected(of: batch)
        let sql = "SELECT fold_statistics(\((1...parameters.count).map { "$\($0)" }.joined(separator: ", ")))"
        return Query(PostgresStatement(sql, parameters)) { _ in }
    }

    private static func oplogs(of batch: StatisticsBatch) -> [PostgresValue] {
        let oplogs = batch.oplogs.sorted { $0.key < $1.key }
        return [
            .int64Array(oplogs.map(\.key.channelID)), .int64Array(oplogs.map(\.key.oplogID.value)),
            .int64Array(oplogs.map(\.value.noted.milliseconds)),
            .int64Array(oplogs.map(\.value.handedOut?.milliseconds)),
            .int64Array(oplogs.map(\.value.confirmed?.milliseconds)),
        ]
    }

    private static func deliveries(of batch: StatisticsBatch) -> [PostgresValue] {
        let deliveries = batch.deliveries.sorted { $0.key < $1.key }
        return [
            .int64Array(deliveries.map(\.key.oplog.channelID)), .int64Array(deliveries.map(\.key.oplog.oplogID.value)),
            .textArray(deliveries.map(\.key.deviceID.text)),
            .int64Array(deliveries.map(\.value.handedOut?.at.milliseconds)),
            .textArray(deliveries.map { $0.value.handedOut?.user ?? "" }),
            .int16Array(deliveries.map { $0.value.handedOut?.operatingSystem?.rawValue ?? 0 }),
            .textArray(deliveries.map { $0.value.handedOut?.appVersion ?? "" }),
            .int64Array(deliveries.map { Int64($0.value.attempts) }),
            .int64Array(deliveries.map(\.value.skipped?.at.milliseconds)),
            .int16Array(deliveries.map(\.value.skipped?.reason.rawValue)),
            .int64Array(deliveries.map(\.value.confirmed?.milliseconds)),
            .int64Array(deliveries.map(\.value.dead?.at.milliseconds)),
            .textArray(deliveries.map { $0.value.dead?.user ?? "" }),
        ]
    }

    private static func discarded(of batch: StatisticsBatch) -> [PostgresValue] {
        let discarded = batch.discarded.sorted { $0.key < $1.key }
        return [
            .int64Array(discarded.map(\.key.receiver.channelID)),
            .textArray(discarded.map(\.key.receiver.deviceID.text)),
            .int64Array(discarded.map(\.value.after.value)), .int64Array(discarded.map(\.key.upto.value)),
            .int64Array(discarded.map(\.value.at.milliseconds)),
        ]
    }

    private static func connected(of batch: StatisticsBatch) -> [PostgresValue] {
        let connected = batch.connected.sorted { $0.key < $1.key }
        return [
            .textArray(connected.map(\.key.instanceID.text)), .textArray(connected.map(\.key.gatewayID)),
            .int64Array(connected.map(\.key.minute.milliseconds)), .int64Array(connected.map { Int64($0.value) }),
        ]
    }

    /// The result of one read of stored pushes.
    package struct Reading: Sendable, Equatable {
        /// Oplogs that were read, without tombstones. Results of device operations are included, but do not count in
        /// the figures.
        package let pushes: Int
        /// The acceptance of the newest one; nil: there is none.
        package let newest: WallTime?
        /// More can be read now.
        package let isBehind: Bool
    }

    /// Adds stored pushes that are not in the figures yet, in one transaction; nil: another aggregator is reading at
    /// this moment.
    ///
    /// - Parameter rows: the approximate largest number of pushes.
    package static func readAccepted(rows: Int) -> Query<Reading?> {
        let sql = "SELECT oplogs, newest_ms, is_behind FROM read_accepted_oplogs($1)"
        return Query(PostgresStatement(sql, [.int32(Int32(clamping: rows))])) { rows throws(PostgresError) in
            try rows.first { columns throws(PostgresError) in
                try Reading(pushes: columns.next(), newest: columns.next(), isBehind: columns.next())
            }
        }
    }

    /// Records that all acceptances and facts from before a time are in the figures.
    package static func recordProgress(upto time: WallTime) -> Query<Void> {
        let sql = """
            UPDATE statistics_progress SET folded_until = to_timestamp($1::bigint / 1000.0)
            WHERE folded_until < to_timestamp($1::bigint / 1000.0)
            """
        return Query(PostgresStatement(sql, [.int64(time.milliseconds)])) { _ in }
    }

    /// Removes some rows whose time has ended; returns how many. Fewer than `rows`: none are left to remove.
    ///
    /// - Parameter rows: the approximate largest number of rows of each kind.
    package static func forget(rows: Int) -> Query<Int> {
        Query(PostgresStatement("SELECT forget_statistics($1)", [.int32(Int32(clamping: rows))])) {
            rows throws(PostgresError) in
            try rows.first(Int.self) ?? 0
        }
    }
}
