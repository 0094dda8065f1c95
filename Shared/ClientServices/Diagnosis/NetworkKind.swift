/// What kind of network a device is on, as the app learns it from the system.
public enum NetworkKind: Sendable, Hashable {
    /// The app has not said; what may go over any network is tried.
    case unknown
    /// None.
    case none
    /// One that costs nothing by the byte.
    case wifi
    /// One that may.
    case cellular
}
