/// Translates a session's frames for a client with a protocol of its own. Used on the connection's event loop only.
///
/// It stores no data: a session passes an entry only when the transport can write it to the client at once. So the
/// rules are checked before each write.
protocol DeviceTransport: AnyObject {
    /// The free capacity, in entries. `TransportCapacityEvent` reports when it rises above 0.
    var room: Int { get }

    /// Whether the client accepts data of a Sync ID.
    func accepts(_ bizType: String) -> Bool

    /// Suspends Sync IDs that the client does not accept. The session receives a frame with them after this turn.
    func suspend(_ bizTypes: Set<String>)
}

/// Pipeline event: the transport has free capacity again.
struct TransportCapacityEvent {}
