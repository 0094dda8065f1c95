/// What translates a session's frames for a client with a protocol of its own; on the connection's event loop only.
///
/// It keeps no data: a session hands data over only when the transport can write the data to its client at once, so
/// every rule of hand-out is asked before each write.
protocol DeviceTransport: AnyObject {
    /// Entries that can be written to the client now. `TransportRoom` tells when it rises above 0.
    var room: Int { get }

    /// Whether the client takes data of a business type.
    func wants(_ bizType: String) -> Bool

    /// Has these business types suspended, since the client does not take them; the session hears of it as of a frame
    /// of its device, after this turn.
    func suspend(_ bizTypes: Set<String>)
}

/// The event by which a transport tells its session that it can take entries again.
struct TransportRoom {}
