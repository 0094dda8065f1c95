/// The kind of network that the device uses. The app learns it from the operating system.
public enum NetworkKind: Sendable, Hashable {
    /// The app has not called `networkChanged(to:)` yet. Uploads that allow any network are tried.
    case unknown
    /// No network.
    case none
    /// A network without a charge per byte.
    case wifi
    /// A network that can charge per byte.
    case cellular
}
