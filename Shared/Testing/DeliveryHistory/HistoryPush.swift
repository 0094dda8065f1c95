/// A push of a run: its rules, its response and its effects on devices.
struct HistoryPush: Sendable {
    struct Validity: Sendable {
        /// End, since the start of the run. The value is nil if the push does not expire within the run.
        var until: Duration?
        /// The database clock was wrong during the validity, so the push can have expired at any time.
        var wasClockWrong = false
        var hasEnded = false
    }

    struct Recall: Sendable {
        var isBegun = false
        var answeredAt: Duration?
        /// Devices whose apps received the tombstone, also before the response to the recall.
        var toldDevices: Set<String> = []
        /// Devices without positions that received the push. The service has no record of that.
        var devicesNotOnRecord: Set<String> = []
    }

    /// The previous and the next push of the same channel in the same call.
    struct Neighbours: Sendable {
        var before: String?
        var after: String?
    }

    let target: HistoryTarget
    var reach: HistoryReach
    let invokedAt: Duration
    var validity = Validity()
    var recall = Recall()
    var neighbours = Neighbours()
    /// The highest answered id of its channel at the first attempt. The push must get a higher id.
    let lowerBound: Int64
    var id: Int64?
    var mayBeStored = false
    var isForgotten = false
    /// The response said NOT_ONLINE.
    var isNotOnline = false
    /// The first device whose app received the push.
    var receiver: String?
}
