/// Who wins when the service's copy is another than the one an edit was made on (spec, two-way §1).
public enum ConflictResolutionPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// The edit: it is sent with `If-Match: *`.
    case clientWins = "CLIENT_WINS"
    /// Nobody yet: the edit is kept, and both versions are shown. The default.
    case preserveConflict = "PRESERVE_CONFLICT"
    /// The service: the edit is dropped. The default of files.
    case serverWins = "SERVER_WINS"
}
