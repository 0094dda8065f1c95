import LocalEntities

/// An incident that a technician repairs.
struct Incident: Codable, EntityRecord {
    static let entityType = EntityType(
        "Incident", key: "id",
        attributes: [
            EntityAttribute("id", .text), EntityAttribute("title", .text), EntityAttribute("status", .text),
            EntityAttribute("technician", .text, isNullable: true), EntityAttribute("note", .text, isNullable: true),
            EntityAttribute("photo", .text, isNullable: true),
        ])

    var id: String
    var title: String
    /// `open`, `assigned` or `closed`.
    var status = "open"
    /// The key of the technician.
    var technician: String?
    var note: String?
    /// The entity tag of the photo, which only the backend writes; nil: no photo.
    var photo: String?

    /// One line of text without the key.
    var summary: String {
        let more = [technician.map { "by \($0)" }, note.map { "\"\($0)\"" }].compactMap(\.self)
        return ([title, status] + more).joined(separator: ", ")
    }
}
