/// What a device does on a frame, as far as a gateway can see it.
enum ClientReaction: Hashable, Sendable {
    /// Nothing; the connection goes on.
    case ignored
    /// A Pong with the number 7.
    case pong
    /// The device ends the connection and comes back.
    case ends
}
