import NIOCore

/// What came of one step so far.
final class LoadStepProgress {
    /// What it has to come to.
    enum Goal {
        case answered
        /// Every device is there and has everything, and the gateway has recorded that.
        case delivered
        /// No device has a connection.
        case gone
    }

    let start: Int64
    /// Kept when the step has ended.
    let promise: EventLoopPromise<Void>
    var end: Int64 = 0
    /// Nothing happened for too long: what was waited for did not come.
    var isComplete = false
    /// Streams and spans of time that have not ended.
    var open = 0
    /// Calls that are not answered.
    var calls = 0
    /// Devices that are still to connect.
    var away: ArraySlice<Int> = []
    var goal = Goal.answered
    var connects = 0
    var retries = 0
    var connectLatency = LatencyHistogram()
    /// The run's events when it was last looked whether anything happens.
    var seenEvents = 0

    init(start: Int64, promise: EventLoopPromise<Void>) {
        self.start = start
        self.promise = promise
    }
}
