/// Where a synchronisation is: it begins with a connection, or a bind, and ends when nothing waits any more.
public enum SyncStep: Sendable, Hashable {
    /// The gateway is being asked.
    case starting
    /// What the app has confirmed meanwhile is told.
    case uploading
    /// What waited for this device comes in.
    case downloading
    /// Everything that waited is stored; from now on data comes as it is pushed.
    case finishing
    /// The connection ended before everything was here; the next one goes on from there.
    case error(reason: String)
}
