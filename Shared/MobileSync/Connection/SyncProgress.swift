/// How far a synchronisation has come.
enum SyncProgress: Hashable, Sendable {
    /// There is no connection.
    case idle
    /// It has begun; nothing has come yet.
    case begun
    /// Data comes in.
    case downloading
    /// Nothing waits any more.
    case done
}
