import DeviceProtocol

/// Tells the session's handler that the connection ends because too much was sent.
struct RateRefusal: Hashable, Sendable {
    let code: CloseCode
    /// For developers.
    let reason: String
}
