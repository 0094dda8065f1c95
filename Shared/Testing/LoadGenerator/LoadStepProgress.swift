import NIOCore

/// Progress of one step.
final class LoadStepProgress {
    /// The condition for the end of the step.
    enum Goal {
        case answered
        /// Every device is connected and has every push, and the gateway has recorded that.
        case delivered
        /// No device has a connection.
        case gone
    }

    let start: Int64
    /// Completed at the end of the step.
    let promise: EventLoopPromise<Void>
    /// 0 while the step runs.
    var end: Int64 = 0
    /// False if the step ended because no event came for too long.
    var isComplete = false
    /// Number of streams and timers that have not ended.
    var open = 0
    /// Number of calls without a response.
    var calls = 0
    /// Numbers of the devices that must still connect.
    var away: ArraySlice<Int> = []
    var goal = Goal.answered
    var connects = 0
    var retries = 0
    var connectLatency = LatencyHistogram()

    init(start: Int64, promise: EventLoopPromise<Void>) {
        self.start = start
        self.promise = promise
    }
}
