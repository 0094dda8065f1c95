/// The network that a device is on, as far as a client has to know it (spec K9).
public struct NetworkPath: Sendable, Hashable {
    /// Whether anything can be reached at all; without it the client does not try.
    public var isAvailable: Bool
    /// Tells one network from another, such as `cellular` or `wifi-office`: a connection is made anew when it changes,
    /// and what was learned of heartbeats is kept for each; up to 100 characters count.
    public var name: String

    /// A path as the operating system tells it.
    public init(isAvailable: Bool, name: String = "") {
        self.isAvailable = isAvailable
        self.name = name
    }
}
