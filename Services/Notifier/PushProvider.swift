/// Somebody who carries a silent push to a device.
protocol PushProvider: Sendable {
    /// Asks for one wake-up of the device with this token.
    func wake(_ token: String) async -> WakeUpOutcome
}

/// What a provider said of a wake-up.
enum WakeUpOutcome: Hashable, Sendable {
    case taken
    /// The app is not on the device any more.
    case gone
    /// It cannot now; the time that it named, if it named one.
    case later(Duration?)
    /// It will not, as things are set up here.
    case refused(String)
}
