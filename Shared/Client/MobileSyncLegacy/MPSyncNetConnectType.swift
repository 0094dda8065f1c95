public import MobileSync

/// The status of the connection. The numbers are those of the guide (K1).
#if canImport(ObjectiveC)
    @objc
#endif
public enum MPSyncNetConnectType: Int, Sendable {
    /// The client is not started, is in the background, or waits before the next attempt.
    case notAvailable = 0
    /// A connection attempt is in progress.
    case connecting = 1
    /// The gateway has accepted this device.
    case connected = 2
    /// The last attempt failed. The client tries again.
    case connectFailed = 3

    /// Creates the guide's value from the client's status.
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
