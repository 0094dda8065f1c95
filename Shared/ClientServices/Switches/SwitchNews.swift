/// News of the configuration switches.
public enum SwitchNews: Sendable, Hashable {
    /// The server has set them: what is here is what it wants as of this version, changed or not.
    case fetched(version: Int64)
    /// These have other values now, or are gone, or new.
    case changed(keys: Set<String>)
}
