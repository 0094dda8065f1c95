/// Why a connection was not taken, or ended for what it sent or left unread: the label of
/// `mss_gateway_refused_connections_total`.
enum AdmissionRefusal: String, CaseIterable, Sendable {
    /// Its source has opened too many lately.
    case sourceRate = "source_rate"
    /// All sources together have.
    case handshakeRate = "handshake_rate"
    /// Too many are open without a `Connect`, and its source has most of them.
    case unconnected
    /// It had sent no `Connect` and made room for another.
    case displaced
    /// Its app has connected too often lately.
    case appRate = "app_rate"
    /// Its user was bound too often lately.
    case userRate = "user_rate"
    /// The device went on sending more than it may.
    case deviceRate = "device_rate"
    /// The device took too little of what was sent to it.
    case stalled
}
