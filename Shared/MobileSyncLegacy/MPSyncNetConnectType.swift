public import MobileSync

/// Where the connection is; the numbers are the guide's (spec K1).
#if canImport(ObjectiveC)
    @objc
#endif
public enum MPSyncNetConnectType: Int, Sendable {
    /// Not set up, in the background, or waiting to connect again.
    case notAvailable = 0
    /// On its way.
    case connecting = 1
    /// The gateway has greeted this device.
    case connected = 2
    /// The last attempt failed; another follows.
    case connectFailed = 3

    /// The same in the guide's words.
    public init(_ status: SyncStatus) {
        self =
            switch status {
            case .notAvailable: .notAvailable
            case .connecting: .connecting
            case .connected: .connected
            case .connectFailed: .connectFailed
            }
    }
}
