/// An event of the client, other than data. Read it from `SyncClient.events`.
public enum SyncEvent: Sendable, Hashable {
    /// The connection's status has changed.
    case status(SyncStatus)
    /// The gateway has accepted the user. The user's data follows.
    case bound(userID: String)
    /// The gateway has refused the user. The reason is a text for developers.
    case bindRefused(userID: String, reason: String)
    /// The client has received the complete backlog of the last connect or bind.
    case caughtUp(userID: String?)
    /// The local store is full of unconfirmed oplogs. The client stores no more data until the app confirms oplogs
    /// (K8).
    case storeFull
    /// The local store is an older copy of itself, for example from a backup. The service sends the data that the copy
    /// lacks again, if it is still valid. These oplogs have `SyncOplog.isReplay`, because the app may have confirmed
    /// them.
    case storeRolledBack
    /// The tenant reports the user session as invalid. Sign the user in again, then bind. Data without a session check
    /// still arrives.
    case sessionInvalid(userID: String, reason: String)
    /// The service has refused the device id, because another device uses it or because its secret was lost. The client
    /// has created this id and connects with it. Backends must push data for the device to this id.
    case registeredAnew(deviceID: String)
    /// The service has refused a parameter of the kind `server`, or a filter's value has changed too often. The
    /// previous value stays in force. The reason is a text for developers.
    case parameterRefused(reason: String)
    /// The gateway closed the connection with this code (`DeviceProtocol.md`, Close codes).
    case closed(code: UInt32, reason: String)
    /// The client refused the gateway's certificate, and has sent nothing. The error has the code `certificate` and
    /// names the authority that was expected. The client tries again.
    case certificateRefused(SyncError)
    /// The connection was lost or could not be established.
    case connectionLost(reason: String)
}
