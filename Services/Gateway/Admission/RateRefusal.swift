import DeviceProtocol

/// Pipeline event: the connection must end because the device sent too much.
struct RateRefusal: Hashable, Sendable {
    let code: CloseCode
    /// Text for app developers.
    let reason: String
}
