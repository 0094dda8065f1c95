import ServiceKit
import StoreService
import SyncStore

/// Settings of the oplog writer.
enum WriterSettings {
    /// Store workers that append pushes, at least one for each store. One is enough for a machine of two cores: several
    /// wait for the same disk, and their batches are smaller (Measurements.md, "Tried on the hot path").
    static let appendWorkers = SettingKey<Int>.integer("MSS_WRITER_APPEND_LANES", in: 1...16, default: 1)
    /// Store workers that read pages of backlogs.
    static let fetchWorkers = SettingKey<Int>.integer("MSS_WRITER_FETCH_LANES", in: 1...16, default: 2)

    static let keys =
        PostgresSettings.keys + [
            StoreLayout.setting.erased, appendWorkers.erased, fetchWorkers.erased, KeyRingSetting.masters.erased,
        ]
}
