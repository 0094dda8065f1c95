/// The facts about a connection that decide about the next one. A pure value.
struct ConnectionRecord {
    /// The reason of the end; nil while the connection goes on.
    var end: ConnectionEnd?
    /// The time when the gateway accepted the connect; nil when it has not on this or the last connection.
    var connectedAt: ContinuousClock.Instant?
    /// The user of the last connection at its end.
    var lastBoundUser: BoundUser?
}
