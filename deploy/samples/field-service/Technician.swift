import LocalEntities

/// Somebody who repairs.
struct Technician: Codable, EntityRecord {
    static let entityType = EntityType(
        "Technician", key: "id",
        attributes: [
            EntityAttribute("id", .text), EntityAttribute("name", .text), EntityAttribute("isOnDuty", .boolean),
        ])

    var id: String
    var name: String
    var isOnDuty: Bool

    /// One line for people, without its key.
    var words: String { "\(name), \(isOnDuty ? "on duty" : "off duty")" }
}
