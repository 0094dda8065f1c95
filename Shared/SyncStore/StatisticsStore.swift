import PostgreSQL
import SyncModel

/// The figures about pushes; the statistics aggregator is their only writer.
package enum StatisticsStore {
    /// Folds a batch in one transaction; folding what was folded before changes nothing.
    package static func fold(_ batch: StatisticsBatch) -> Query<Void> {
        let sql = "SELECT fold_statistics($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
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
        return Query(PostgresStatement(sql, parameters)) { _ in }
    }
}
