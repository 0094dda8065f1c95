/// The result of an edit that was made on another version than the backend now has (RES4).
public enum ConflictResolutionPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// The edit wins; it is sent with `If-Match: *`.
    case clientWins = "CLIENT_WINS"
    /// The edit is kept, and the app gets both versions. The default.
    case preserveConflict = "PRESERVE_CONFLICT"
    /// The backend's version wins; the edit is dropped. The default of files.
    case serverWins = "SERVER_WINS"
}
