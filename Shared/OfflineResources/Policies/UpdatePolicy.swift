/// What becomes of an edit that is made offline (spec, two-way §1).
public enum UpdatePolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// It fails with `ResourceError.offline`, and nothing is kept of it.
    case updateIfOnline = "UPDATE_IF_ONLINE"
    /// It is kept and sent later. The default.
    case queueIfOffline = "QUEUE_IF_OFFLINE"
}
