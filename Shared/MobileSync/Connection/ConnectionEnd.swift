/// How a connection came to its end.
enum ConnectionEnd: Hashable, Sendable {
    /// The gateway said so.
    case closed(code: UInt32, reason: String, retryAfter: Duration, address: String)
    /// A batch began above this client's position: the sync points must be told anew.
    case gap
    /// The app wants no connection now, another network is there, or the store has room again: no failure, no wait.
    case left
    /// Nothing was heard after a ping, or the gateway did not greet in time.
    case silent
    /// The transport failed, or the bytes were no protocol.
    case lost(reason: String)
}
