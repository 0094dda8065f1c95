/// Something an app may want to know of beside its data.
public enum SyncEvent: Sendable, Hashable {
    /// The connection's status has changed.
    case status(SyncStatus)
    /// The gateway has taken the user; its data follows.
    case bound(userID: String)
    /// The gateway has refused the user; the reason is for a developer.
    case bindRefused(userID: String, reason: String)
    /// Everything that waited when the connection opened, or the user was bound, has been received.
    case caughtUp(userID: String?)
    /// The local store is full of what the app has not confirmed: nothing more is taken until it confirms (spec K8).
    case storeFull
    /// The local store is an older copy of itself, such as a restored backup. The data that it had taken since then
    /// comes again as far as it is valid, with `SyncOplog.isReplay`, although the app may have confirmed it.
    case storeRolledBack
    /// The tenant calls the session invalid: sign in again and bind. Data that needs no session goes on.
    case sessionInvalid(userID: String, reason: String)
    /// The service does not take this device for the one that it knows under its id, which another has, or whose secret
    /// was lost: the client has taken this id and connects with it. Data for the device is to be pushed to it.
    case registeredAnew(deviceID: String)
    /// The service does not keep a subscription parameter that was set (kind `server`), or a filter's value was changed
    /// too often; the reason is for a developer. What was in force before goes on.
    case parameterRefused(reason: String)
    /// The gateway closed the connection with this code (DeviceProtocol.md, Close codes).
    case closed(code: UInt32, reason: String)
    /// The connection was lost, or could not be made.
    case connectionLost(reason: String)
}
