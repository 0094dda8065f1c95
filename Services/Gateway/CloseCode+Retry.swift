import DeviceProtocol

extension CloseCode {
    /// From which `retry_after_ms` is drawn: spread, so that those who were closed together do not come back together.
    var retryAfterMilliseconds: ClosedRange<UInt32> {
        switch self {
        case .overloaded: 1_000...10_000
        // It did not do so by chance: a loop in its app would only begin anew.
        case .tooManyFrames: 10_000...60_000
        // Time for an operator to see that it is gone.
        case .disconnected: 2_000...5_000
        default: 200...2_000
        }
    }
}
