import LocalEntities

/// An incident that a technician repairs.
struct Incident: EntityRecord {
    static let entityType = EntityType(of: Incident.self, key: \.id)

    var id: String
    var title: String
    /// `open`, `assigned` or `closed`.
    var status = "open"
    /// The user who repairs it.
    var technician: String?
    var note: String?
    /// The entity tag of the photo, which only the backend writes; nil: no photo.
    var photo: String?

    /// One line of text without the key.
    var summary: String {
        let more = [technician.map { "by \($0)" }, note.map { "\"\($0)\"" }, photo.map { _ in "photo" }]
        return ([title, status] + more.compactMap(\.self)).joined(separator: ", ")
    }
}
