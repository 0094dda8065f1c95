/// Why the gateway refused or ended a connection: the label of `mss_gateway_refused_connections_total`.
enum AdmissionRefusal: String, CaseIterable, Sendable {
    /// The source exceeded its rate of new connections.
    case sourceRate = "source_rate"
    /// The sources whose last connection failed exceeded their common rate.
    case suspectRate = "suspect_rate"
    /// The event loop is late: handshakes would delay the connected devices further.
    case late
    /// Too many connections without a `Connect` are open, and none may be displaced for this one.
    case unconnected
    /// It had sent no `Connect`, and the gateway closed it to accept another connection.
    case displaced
    /// The app exceeded its rate of connects.
    case appRate = "app_rate"
    /// The user exceeded the rate of binds.
    case userRate = "user_rate"
    /// The device continued to send above its rate.
    case deviceRate = "device_rate"
    /// The device read too little of the data that was sent to it.
    case stalled
}
