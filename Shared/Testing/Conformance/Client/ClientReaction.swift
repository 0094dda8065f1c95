/// A device's reaction to a frame, as far as a gateway can see it.
enum ClientReaction: Hashable, Sendable {
    /// No reaction. The connection continues.
    case ignored
    /// A `Pong` with the number 7.
    case pong
    /// The device ends the connection and reconnects.
    case ends
}
