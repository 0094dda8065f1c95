/// What a gateway does on an event, as far as a device can see it.
enum GatewayReaction: Hashable, Sendable {
    /// A Close frame with this code, then the end.
    case close(UInt32)
    /// The end, with or without a Close frame of the code 1000.
    case ends
    /// Nothing; the connection goes on.
    case ignored
    /// Connected.
    case opens
    /// BindResult that accepts the bind number 2.
    case binds
    /// A Pong with the number 7.
    case pong
    /// ConfirmRecorded for the report 7.
    case recorded
    /// A page for the request 7, with data or a refusal.
    case page
}
