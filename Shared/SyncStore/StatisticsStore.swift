import PostgreSQL
import SyncModel

/// The figures about pushes; the statistics aggregator is their only writer.
package enum StatisticsStore {
    /// Folds a batch in one transaction; folding what was folded before changes nothing.
    package static func fold(_ batch: StatisticsBatch) -> Query<Void> {
        let sql = "SELECT fold_statistics(\((1...29).map { "$\($0)" }.joined(separator: ", ")))"
        let addresses = batch.addresses.sorted { $0.key < $1.key }
        let oplogs = batch.oplogs.sorted { $0.key < $1.key }
        let stored = batch.stored.sorted { $0.key < $1.key }
        let parameters: [PostgresValue] = [
            .int64Array(addresses.map(\.key)), .textArray(addresses.map(\.value.target.instanceID.text)),
            .int16Array(addresses.map(\.value.target.kind.rawValue)), .textArray(addresses.map(\.value.target.target)),
            .textArray(addresses.map(\.value.bizType.text)),
            .int64Array(oplogs.map(\.key.channelID)), .int64Array(oplogs.map(\.key.oplogID.value)),
            .int64Array(oplogs.map(\.value.accepted?.milliseconds)),
            .int64Array(oplogs.map(\.value.handedOut?.milliseconds)),
            .int64Array(oplogs.map(\.value.confirmed?.milliseconds)),
            .int64Array(stored.map(\.key.channelID)), .textArray(stored.map(\.key.deviceID.text)),
            .int64Array(stored.map(\.value.upto.value)), .int64Array(stored.map(\.value.at.milliseconds)),
        ]
        return Query(PostgresStatement(sql, parameters + deliveries(of: batch) + discarded(of: batch))) { _ in }
    }

    private static func deliveries(of batch: StatisticsBatch) -> [PostgresValue] {
        let deliveries = batch.deliveries.sorted { $0.key < $1.key }
        return [
            .int64Array(deliveries.map(\.key.oplog.channelID)), .int64Array(deliveries.map(\.key.oplog.oplogID.value)),
            .textArray(deliveries.map(\.key.deviceID.text)),
            .int64Array(deliveries.map(\.value.handedOut?.milliseconds)),
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
}
