import LocalEntities

/// A technician.
struct Technician: Codable, EntityRecord {
    static let entityType = EntityType(
        "Technician", key: "id",
        attributes: [
            EntityAttribute("id", .text), EntityAttribute("name", .text), EntityAttribute("isOnDuty", .boolean),
        ])

    var id: String
    var name: String
    var isOnDuty: Bool

    /// One line of text without the key.
    var summary: String { "\(name), \(isOnDuty ? "on duty" : "off duty")" }
}
