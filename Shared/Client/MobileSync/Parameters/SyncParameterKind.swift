/// The place where a parameter's value is kept, which also decides for which devices it holds (personalisation keys).
public enum SyncParameterKind: Int, Sendable, Hashable, CaseIterable {
    /// In the client's memory, until sign-out or the end of the process. It takes precedence over the other kinds.
    case session
    /// In the local store, also after restarts. It takes precedence over `server`.
    case client
    /// On the server, for all devices of the user. It takes precedence over the default of the configuration.
    case server
}
