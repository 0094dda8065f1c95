import GRDB
import SyncModel

/// The subscriptions of a local store: its suspended Sync IDs, cached in memory, and the deletion of a Sync ID's data.
/// Not thread-safe.
final class LocalSubscriptions {
    private let file: LocalStoreFile
    private let channels: LocalChannels
    private let oplogs: LocalOplogs
    /// The suspended Sync IDs.
    private(set) var suspended: Set<String> = []

    /// Call `load` before any other use.
    init(file: LocalStoreFile, channels: LocalChannels, oplogs: LocalOplogs) {
        self.file = file
        self.channels = channels
        self.oplogs = oplogs
    }

    /// Reads the suspended Sync IDs.
    func load() throws(SyncError) {
        suspended = try file.access("reading suspended Sync IDs") { db in
            Set(try String.fetchAll(db, sql: "SELECT biz_type FROM suspended"))
        }
    }

    /// Whether a Sync ID is suspended.
    func isSuspended(_ bizType: String) -> Bool { suspended.contains(bizType) }

    /// Suspends or resumes a Sync ID.
    ///
    /// - Throws: `SyncError.invalidArgument` above the limit of the protocol, because the gateway would close the
    ///   connection for good.
    func setSuspended(_ isSuspended: Bool, bizType: String) throws(SyncError) {
        guard !isSuspended || suspended.contains(bizType) || suspended.count < Limits.suspendedBizTypes else {
            throw SyncError(
                .invalidArgument, "\(Limits.suspendedBizTypes) Sync IDs are suspended already; resume one of them first"
            )
        }
        try file.change("changing suspended Sync IDs") { db in
            try db.execute(
                sql: isSuspended
                    ? "INSERT OR IGNORE INTO suspended VALUES (?)" : "DELETE FROM suspended WHERE biz_type = ?",
                arguments: [bizType])
        }
        if isSuspended { suspended.insert(bizType) } else { suspended.remove(bizType) }
    }

    /// Deletes the data of a Sync ID, of the device and this user. Confirmations stay until the gateway has recorded
    /// them. Sync points stay, so that the data does not arrive again.
    func deleteData(of bizType: String, userID: String?) throws(SyncError) {
        let emptied = channels.all(of: bizType, visibleTo: userID).map { channel in
            var channel = channel
            channel.range.dropped(upto: max(channel.position, channel.range.upto))
            return channel
        }
        try file.change("deleting the data of a Sync ID") { db in
            for channel in emptied {
                try oplogs.deleteAll(of: channel, in: db)
                try channels.update(channel, in: db)
            }
            try db.execute(
                sql: "DELETE FROM recovery WHERE biz_type = ? AND user_id IN ('', ?)",
                arguments: [bizType, userID ?? ""])
        }
        for channel in emptied { channels.remember(channel) }
    }
}
