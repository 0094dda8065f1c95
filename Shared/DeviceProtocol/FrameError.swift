/// Why bytes are no frames; the connection cannot go on, as the next frame's start is lost.
package enum FrameError: Error, Hashable, Sendable {
    /// The length is above the receiver's limit.
    case tooLarge(bytes: Int)
    /// The bytes are no `Packet`.
    case malformed
}
