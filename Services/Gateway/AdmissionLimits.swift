import ServiceKit

/// How much the gateway takes from one source, device, user and app (reliability SEC2, SEC11); defaults are the
/// settings' defaults. Of everything that is counted per second four seconds' worth may come at once.
struct AdmissionLimits: Sendable {
    /// New connections of one source in a second.
    var sourceConnections = 20
    /// New connections of all sources in a second: TLS handshakes are the dearest that a stranger can ask for.
    var handshakes = 500
    /// Connections without a `Connect` at one time.
    var unconnected = 1_000
    /// `Connect`s of one app in a second.
    var appConnects = 1_000
    /// Questions for history and summary of all devices of one app in a second.
    var appRequests = 5_000
    /// Binds, subscriptions and changes of the foreground of all devices of one app in a second.
    var appChanges = 2_000
    /// Binds of one user in a second, those within `Connect` too.
    var userBinds = 20
    /// Frames of any kind of one device in a second.
    var deviceFrames = 2_000
    /// Questions for history and summary of one device in a second.
    var deviceRequests = 200
    /// Binds, subscriptions and changes of the foreground of one device in a second: each is written to the store.
    var deviceChanges = 20
    /// Balancers that tell the source of each of their connections before anything else.
    var trustedProxies: [IPRange] = []

    /// Sources, or users, that are remembered at one time.
    static let remembered = 65_536
    /// Of the handshakes, those of sources whose last connection failed: a flood costs no more than these.
    var suspectHandshakes: Int { max(1, handshakes / 4) }
}
