import ServiceKit
import StoreService
import SyncStore

/// Settings of the oplog writer.
enum WriterSettings {
    /// Store workers that append pushes, at least one for each store. With one, a locked channel or a slow commit
    /// delays all appends of the writer; with more than four for each machine, batches only become smaller.
    static let appendWorkers = SettingKey<Int>.integer("MSS_WRITER_APPEND_LANES", in: 1...16, default: 2)
    /// Store workers that read pages of backlogs.
    static let fetchWorkers = SettingKey<Int>.integer("MSS_WRITER_FETCH_LANES", in: 1...16, default: 2)

    static let keys =
        PostgresSettings.keys + [
            StoreLayout.setting.erased, appendWorkers.erased, fetchWorkers.erased, KeyRingSetting.masters.erased,
        ]
}
