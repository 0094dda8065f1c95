import LocalEntities

/// Something that is to be repaired somewhere.
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
    /// The key of whoever repairs it.
    var technician: String?
    var note: String?
    /// The entity tag of its photo, which only the backend writes; nil: there is none.
    var photo: String?

    /// One line for people, without its key.
    var words: String {
        let more = [technician.map { "by \($0)" }, note.map { "\"\($0)\"" }].compactMap(\.self)
        return ([title, status] + more).joined(separator: ", ")
    }
}
