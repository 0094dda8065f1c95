/// Where the value of a subscription parameter is kept, and so for whom it holds (personalisation keys).
public enum SyncParameterKind: Int, Sendable, Hashable, CaseIterable {
    /// In the client's memory, until sign-out or the end of the process; before all others.
    case session
    /// In the local store, over restarts; before `server`.
    case client
    /// On the server, for all devices of the user; before the default of the configuration.
    case server
}
