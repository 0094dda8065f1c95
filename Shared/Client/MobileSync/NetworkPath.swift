/// The network that a device uses, as the app reports it to the client (K9).
public struct NetworkPath: Sendable, Hashable {
    /// Whether the device has a network. Without one, the client makes no connection attempts.
    public var isAvailable: Bool
    /// Identifies the network, for example `cellular` or `wifi-office`. The client connects again when the name
    /// changes, and learns a heartbeat interval for each name. The first 100 characters count.
    public var name: String

    /// Creates a path from the values that the operating system reports.
    public init(isAvailable: Bool, name: String = "") {
        self.isAvailable = isAvailable
        self.name = name
    }
}
