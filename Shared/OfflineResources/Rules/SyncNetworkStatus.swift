/// Whether the service is talked to; the names are Oracle's (spec, two-way §1).
public enum SyncNetworkStatus: String, Sendable, Hashable, CaseIterable {
    case online = "SyncOnline"
    /// There is no network, or the service could not be reached.
    case offline = "SyncOffline"
    /// There is a network, and the app has switched to working offline.
    case offlineTest = "SyncOfflineTest"
}
