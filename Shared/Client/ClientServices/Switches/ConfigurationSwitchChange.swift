/// A change of the configuration switches.
public enum ConfigurationSwitchChange: Sendable, Hashable {
    /// A valid push has arrived. The switches now have the server's values of this version, whether a value has changed
    /// or not.
    case fetched(version: Int64)
    /// These switches were added, changed or removed.
    case changed(keys: Set<String>)
}
