import DeviceProtocol

extension CloseCode {
    /// The range of `retry_after_ms`. It is wide, so that devices that were closed together do not reconnect together.
    var retryAfterMilliseconds: ClosedRange<UInt32> {
        switch self {
        case .overloaded: 1_000...10_000
        // A loop in the app is the usual cause, and it would continue.
        case .tooManyFrames: 10_000...60_000
        // Time for an operator to see that the device is disconnected.
        case .disconnected: 2_000...5_000
        default: 200...2_000
        }
    }

    /// The delay before a closed device reconnects: random, so that not all reconnect at once.
    ///
    /// - Parameter fraction: in 0..<1.
    func retryAfterMilliseconds(at fraction: Double) -> UInt32 {
        let range = retryAfterMilliseconds
        return range.lowerBound + UInt32(fraction * Double(range.upperBound - range.lowerBound))
    }
}
