/// The connectivity of the client. The names are Oracle's (RES8).
public enum SyncNetworkStatus: String, Sendable, Hashable, CaseIterable {
    case online = "SyncOnline"
    /// There is no network, or the backend could not be reached.
    case offline = "SyncOffline"
    /// There is a network, and the app has switched offline mode on.
    case offlineTest = "SyncOfflineTest"
}
