/// The result of an edit that is made offline (RES3).
public enum UpdatePolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// The edit fails with `ResourceError.offline` and is not stored.
    case updateIfOnline = "UPDATE_IF_ONLINE"
    /// The edit is stored and sent later. The default.
    case queueIfOffline = "QUEUE_IF_OFFLINE"
}
