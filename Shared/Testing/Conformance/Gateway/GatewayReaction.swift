/// A gateway's reaction to an event, as far as a device can see it.
enum GatewayReaction: Hashable, Sendable {
    /// `Close` with this code, then the end of the connection.
    case close(UInt32)
    /// The end of the connection, with or without `Close` 1000.
    case ends
    /// No reaction. The connection continues.
    case ignored
    /// `Connected`.
    case opens
    /// `BindResult` that accepts bind 2.
    case binds
    /// A `Pong` with the number 7.
    case pong
    /// `ConfirmRecorded` for report 7.
    case recorded
    /// A page for request 7, with data or a refusal.
    case page
}
