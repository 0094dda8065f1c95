/// The reason why a connection ended.
enum ConnectionEnd: Hashable, Sendable {
    /// The gateway closed it.
    case closed(code: UInt32, reason: String, retryAfter: Duration, address: String)
    /// A batch began above the client's position. The client must report its sync points again.
    case gap
    /// The app wants no connection, the network has changed, or the store has space again. This is no failure and needs
    /// no wait.
    case left
    /// No frame arrived after a ping, or the gateway did not accept the connect in time.
    case silent
    /// The gateway's certificate is not one that the client trusts.
    case refused(SyncError)
    /// The transport failed, or the received bytes are not valid frames.
    case lost(reason: String)
}
