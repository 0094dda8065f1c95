/// A step of a synchronisation. A synchronisation begins with a connect or a bind, and ends when the backlog is stored.
public enum SyncStep: Sendable, Hashable {
    /// The client sends its request to the gateway.
    case starting
    /// The client reports the confirmations that the gateway does not have.
    case uploading
    /// The client receives the backlog.
    case downloading
    /// The backlog is stored. From now on the client receives data as backends push it.
    case finishing
    /// The connection ended before the backlog was stored. The next connection continues there.
    case error(reason: String)
}
