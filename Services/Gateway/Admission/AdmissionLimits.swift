import ServiceKit

/// Limits for sources, devices, users and apps (SEC2, SEC11). Defaults are the defaults of the settings. For each rate,
/// a burst of four seconds' worth is allowed.
struct AdmissionLimits: Sendable {
    /// New connections of one source per second.
    var sourceConnections = 20
    /// New connections per second of all sources whose last connection failed. A TLS handshake is the most expensive
    /// work that a stranger can cause.
    var suspectHandshakes = 125
    /// Lateness of an event loop above which it accepts no connection.
    var lateness = Duration.milliseconds(25)
    /// Open connections without a `Connect`.
    var unconnected = 1_000
    /// `Connect`s of one app per second.
    var appConnects = 1_000
    /// Requests for history and summary of all devices of one app per second.
    var appRequests = 5_000
    /// Binds, subscriptions and foreground changes of all devices of one app per second.
    var appChanges = 2_000
    /// Binds of one user per second, including those within `Connect`.
    var userBinds = 20
    /// Frames of any kind of one device per second.
    var deviceFrames = 2_000
    /// Requests for history and summary of one device per second.
    var deviceRequests = 200
    /// Binds, subscriptions and foreground changes of one device per second. Each is a write in the store.
    var deviceChanges = 20
    /// Balancers that send the source of each connection before any other byte.
    var trustedProxies: [IPRange] = []

    /// Sources, or users, that the gateway keeps in memory.
    static let remembered = 65_536
}
