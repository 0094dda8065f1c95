/// How far a stream of pushes is.
struct StreamProgress {
    let stream: PushStream
    /// Pushes that were begun, in the order of their places.
    var begun = 0
    /// Pushes that ended and whose call is to be followed by another; of a window.
    var freed = 0
    var isSending = false
    var answers: [String: Int] = [:]
    var answerLatency = LatencyHistogram()
    var deliveryLatency = LatencyHistogram()
    /// Of pushes to everybody, until the last device has it.
    var lastDeviceLatency = LatencyHistogram()
    /// Pushes to everybody that began before this stream's.
    var firstGlobal = 0

    /// Pushes that it has in all; nil: as many as its time allows.
    func total(users: Int) -> Int? {
        switch stream.pace {
        case .each(let count): (stream.users ?? users) * count
        case .times(let count): count
        case .rate, .window: nil
        }
    }
}
