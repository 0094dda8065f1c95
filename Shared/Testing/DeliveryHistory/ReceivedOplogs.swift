/// A device and a channel from which its app receives oplogs.
struct HistoryReceiver: Hashable, Sendable {
    let device: String
    let channel: HistoryTarget
}

/// The oplogs of one channel that one app received.
struct ReceivedOplogs: Sendable {
    var lastFirst: Int64 = 0
    var ids: Set<Int64> = []
    var confirmed: Set<Int64> = []
    /// Ids that were recalled before the app confirmed them. The app need not confirm them.
    var withdrawn: Set<Int64> = []

    var unconfirmed: Int { ids.count - confirmed.count - withdrawn.count }
}
