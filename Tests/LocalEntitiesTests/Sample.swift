import Foundation
import MobileSync

@testable import LocalEntities

/// The types of a field service, for tests.
enum Sample {
    static let incident = EntityType(
        "Incident", key: "id",
        attributes: [
            EntityAttribute("id", .text), EntityAttribute("title", .text),
            EntityAttribute("priority", .integer, isNullable: true, isIndexed: true),
            EntityAttribute("cost", .double, isNullable: true), EntityAttribute("isOpen", .boolean, isNullable: true),
            EntityAttribute("price", .decimal, isNullable: true),
            EntityAttribute("due", .date, isNullable: true), EntityAttribute("photo", .bytes, isNullable: true),
            EntityAttribute("place", .json, isNullable: true),
        ],
        relationships: [EntityRelationship("notes", to: "Note", foreignKey: "incidentID", inverse: "incident")],
        operations: [
            EntityOperationType(
                "assign",
                parameters: [EntityAttribute("technician", .integer), EntityAttribute("why", .text, isNullable: true)])
        ],
        group: "service")

    static let note = EntityType(
        "Note", key: "id",
        attributes: [
            EntityAttribute("id", .text), EntityAttribute("incidentID", .text), EntityAttribute("text", .text),
        ],
        relationships: [EntityRelationship("marks", to: "Mark", foreignKey: "noteID", inverse: "note")],
        group: "service")

    static let mark = EntityType(
        "Mark", key: "id",
        attributes: [EntityAttribute("id", .integer), EntityAttribute("noteID", .text)], group: "service")

    static let technician = EntityType(
        "Technician", key: "id",
        attributes: [EntityAttribute("id", .integer), EntityAttribute("name", .text)], group: "people")

    static let draft = EntityType(
        "Draft", key: "id",
        attributes: [EntityAttribute("id", .integer), EntityAttribute("text", .text, isNullable: true)],
        isLocalOnly: true)

    static func schema() throws -> EntitySchema {
        try EntitySchema([incident, note, mark, technician, draft])
    }

    /// An oplog of one row.
    static func oplog(
        _ key: String, _ fields: [String: JSONValue] = [:], counter: Int64? = nil, isDeleted: Bool = false
    ) throws -> [UInt8] {
        var members: [String: JSONValue] = [
            "key": .text(key), "change": .text(isDeleted ? "D" : "U"), "fields": .object(fields),
        ]
        if let counter { members["counter"] = .integer(counter) }
        return try JSONValue.object(["entities": .array([.object(members)])]).bytes()
    }
}

struct Incident: EntityRecord, Equatable {
    static let entityType = Sample.incident
    var id: String
    var title: String
    var priority: Int?
    var cost: Double?
    var price: Decimal?
    var isOpen: Bool?
    var due: Date?
    var photo: Data?
    var place: Place?

    struct Place: Codable, Equatable {
        var latitude: Double
        var name: String
    }
}

struct Note: EntityRecord, Equatable {
    static let entityType = Sample.note
    var id: String
    var incidentID: String
    var text: String
}
