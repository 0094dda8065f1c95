/// Where a client's connection is; the numbers are the vendor guide's (spec K1).
public enum SyncStatus: Int, Sendable {
    /// Not running, or waiting to connect again.
    case notAvailable = 0
    /// On its way.
    case connecting = 1
    /// The gateway has greeted this client.
    case connected = 2
    /// The last attempt failed; another follows.
    case connectFailed = 3
}
