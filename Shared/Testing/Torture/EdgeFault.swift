/// A fault on the connections between two processes (F53).
enum EdgeFault: Hashable, Sendable {
    /// Direction of bytes: to the server or from it.
    enum Direction: Hashable, Sendable, CaseIterable {
        case up, down
    }

    /// Existing and new connections are reset.
    case cut
    /// Bytes and the end of the connection do not arrive: a half-open connection.
    case silence(Set<Direction>)
    /// Every byte arrives with this delay.
    case delay(milliseconds: Int64)
    /// Everything arrives in segments of a few bytes.
    case fragments
    /// Each connection is reset in the middle of the next data.
    case truncation
    /// One in eight deliveries of a broker arrives twice.
    case repeatedDeliveries
}
