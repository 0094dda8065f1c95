/// The state of the connection and its cause. The numbers are those of the Client Object API (ENT7).
public enum EntityConnectionStatus: Int, Sendable, Hashable, CaseIterable {
    case connected = 1
    case disconnected = 2
    /// The user has switched flight mode on. The app reports it.
    case flightMode = 3
    /// The app reports it.
    case noCoverage = 4
    case waitingToConnect = 5
    /// The app reports it.
    case roaming = 6
    /// The client stores nothing more because its store is full.
    case lowStorage = 7
}
