/// Why there is a connection, or none; the numbers are the neighbour's (spec, two-way §2).
public enum EntityConnectionStatus: Int, Sendable, Hashable, CaseIterable {
    case connected = 1
    case disconnected = 2
    /// The user has switched radio off; the app passes it on.
    case flightMode = 3
    /// The app passes it on.
    case noCoverage = 4
    case waitingToConnect = 5
    /// The app passes it on.
    case roaming = 6
    /// The client takes nothing more, as its store is full.
    case lowStorage = 7
}
