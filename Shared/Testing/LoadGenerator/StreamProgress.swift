/// Progress of a stream of pushes.
struct StreamProgress {
    let stream: PushStream
    /// Number of launched pushes.
    var begun = 0
    /// Number of completed pushes of a window that permit a further call.
    var freed = 0
    var isSending = false
    var answers: [String: Int] = [:]
    /// Due times of the pushes whose latencies are recorded, in nanoseconds of the monotonic clock.
    var latencyWindow: Range<Int64> = 0..<Int64.max
    var answerLatency = LatencyHistogram()
    var deliveryLatency = LatencyHistogram()
    /// Latency of global pushes until the last device.
    var lastDeviceLatency = LatencyHistogram()
    /// Number of global pushes of earlier streams.
    var firstGlobal = 0

    /// Total number of pushes. The value is nil for a stream with a time limit.
    func total(users: Int) -> Int? {
        switch stream.pace {
        case .each(let count): (stream.users ?? users) * count
        case .times(let count): count
        case .rate, .window: nil
        }
    }
}
