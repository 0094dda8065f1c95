/// What goes wrong between two processes (reliability §2, row 53).
enum EdgeFault: Hashable, Sendable {
    /// Which way bytes go: up to the server, or down from it.
    enum Direction: Hashable, Sendable, CaseIterable {
        case up, down
    }

    /// Connections are reset, and new ones too.
    case cut
    /// Bytes do not arrive, nor does a connection's end: a half-open connection.
    case silence(Set<Direction>)
    /// Every byte arrives that much later.
    case delay(milliseconds: Int64)
    /// Everything arrives in segments of a few bytes.
    case fragments
    /// Each connection is reset in the middle of what comes next.
    case truncation
    /// A broker's deliveries come twice, one in eight.
    case repeatedDeliveries
}
