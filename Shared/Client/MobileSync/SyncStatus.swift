/// The status of a client's connection. The numbers are those of the vendor's guide (K1).
public enum SyncStatus: Int, Sendable {
    /// The client does not run, or waits before the next attempt.
    case notAvailable = 0
    /// A connection attempt is in progress.
    case connecting = 1
    /// The gateway has accepted this client.
    case connected = 2
    /// The last attempt failed. The client tries again.
    case connectFailed = 3
}
