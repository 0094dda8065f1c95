/// The kind of an edit.
public enum EditKind: String, Sendable, Hashable, Codable, CaseIterable {
    /// `POST` to a collection; the backend names the new resource in `Location`.
    case create
    /// `PUT` of the whole resource.
    case update
    /// `PATCH` with a JSON merge patch (RFC 7396).
    case patch
    case delete

    var method: String {
        switch self {
        case .create: "POST"
        case .update: "PUT"
        case .patch: "PATCH"
        case .delete: "DELETE"
        }
    }
}
