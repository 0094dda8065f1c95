import Testing

@testable import LocalEntities

@Suite("Entities: declarations") struct EntitySchemaTests {
    private static let id = EntityAttribute("id", .integer)

    static let wrong: [(String, [EntityType])] = [
        ("a name with a special character of SQL", [EntityType("a\"b", key: "id", attributes: [id])]),
        ("an empty name", [EntityType("", key: "id", attributes: [id])]),
        ("a name that is too long", [EntityType(String(repeating: "a", count: 61), key: "id", attributes: [id])]),
        (
            "a name that no component may have",
            [EntityType(String(repeating: "a", count: 31), key: "id", attributes: [id])]
        ),
        (
            "an operation with a name that none may have",
            [
                EntityType(
                    "A", key: "id", attributes: [id],
                    operations: [EntityOperationType(String(repeating: "a", count: 31))])
            ]
        ),
        (
            "two types that differ in case",
            [
                EntityType("A", key: "id", attributes: [id]), EntityType("a", key: "id", attributes: [id]),
            ]
        ),
        ("a key that is no attribute", [EntityType("A", key: "key", attributes: [id])]),
        (
            "a key that may be null",
            [
                EntityType("A", key: "id", attributes: [EntityAttribute("id", .text, isNullable: true)])
            ]
        ),
        ("a key of bytes", [EntityType("A", key: "id", attributes: [EntityAttribute("id", .bytes)])]),
        ("two attributes of a name", [EntityType("A", key: "id", attributes: [id, EntityAttribute("ID", .text)])]),
        ("a name of the state's", [EntityType("A", key: "id", attributes: [id, EntityAttribute("pending", .text)])]),
        (
            "an operation that is there anyhow",
            [
                EntityType("A", key: "id", attributes: [id], operations: [EntityOperationType("delete")])
            ]
        ),
        (
            "children of no type",
            [
                EntityType(
                    "A", key: "id", attributes: [id],
                    relationships: [EntityRelationship("bs", to: "B", foreignKey: "a")])
            ]
        ),
        (
            "a foreign key of another type",
            [
                EntityType(
                    "A", key: "id", attributes: [id],
                    relationships: [EntityRelationship("bs", to: "B", foreignKey: "a")]),
                EntityType("B", key: "id", attributes: [id, EntityAttribute("a", .text)]),
            ]
        ),
        (
            "a local-only parent of a submitted row",
            [
                EntityType(
                    "A", key: "id", attributes: [id],
                    relationships: [EntityRelationship("bs", to: "B", foreignKey: "a")],
                    isLocalOnly: true),
                EntityType("B", key: "id", attributes: [id, EntityAttribute("a", .integer)]),
            ]
        ),
        (
            "children of its own type",
            [
                EntityType(
                    "A", key: "id", attributes: [id, EntityAttribute("a", .integer)],
                    relationships: [EntityRelationship("as", to: "A", foreignKey: "a")])
            ]
        ),
        (
            "a circle",
            [
                EntityType(
                    "A", key: "id", attributes: [id, EntityAttribute("b", .integer)],
                    relationships: [EntityRelationship("bs", to: "B", foreignKey: "a")]),
                EntityType(
                    "B", key: "id", attributes: [id, EntityAttribute("a", .integer)],
                    relationships: [EntityRelationship("as", to: "A", foreignKey: "b")]),
            ]
        ),
        (
            "a relationship called as an attribute",
            [
                EntityType(
                    "A", key: "id", attributes: [id],
                    relationships: [EntityRelationship("id", to: "B", foreignKey: "a")]),
                EntityType("B", key: "id", attributes: [id, EntityAttribute("a", .integer)]),
            ]
        ),
    ]

    @Test("a contradictory declaration is refused", arguments: wrong) func refused(what: String, types: [EntityType]) {
        let error = #expect(throws: EntityError.self) { try EntitySchema(types) }
        #expect(error?.code == .invalidDeclaration, "\(what)")
    }

    @Test("types are found by name") func found() throws {
        let schema = try Sample.schema()
        #expect(try schema.type("Note") == Sample.note)
        let error = #expect(throws: EntityError.self) { try schema.type("note") }
        #expect(error?.code == .noSuchClass)
        #expect(schema.synchronised(group: "people").map(\.name) == ["Technician"])
        #expect(!schema.synchronised(group: nil).contains(Sample.draft))
    }

    @Test("an app update may add nullable attributes and drop attributes, but may not change one")
    func evolution() throws {
        let file = StoreFile()
        let name = EntityAttribute("name", .text)
        func schema(_ attributes: [EntityAttribute], key: String = "id") throws -> EntitySchema {
            try EntitySchema([EntityType("A", key: key, attributes: [Self.id] + attributes)])
        }
        do {
            let store = try file.open(schema: schema([name, EntityAttribute("old", .text)]))
            var row = try store.makeEntity("A")
            try row.set("id", to: 1)
            try row.set("name", to: "n")
            try row.set("old", to: "o")
            try store.create(&row)
        }
        let more = EntityAttribute("more", .date, isNullable: true, isIndexed: true)
        let row = try file.open(schema: schema([name, more])).findByPrimaryKey("A", 1)
        #expect(row?.fields == ["id": 1, "name": "n", "more": .null])
        for attributes in [
            [EntityAttribute("name", .integer)], [name, EntityAttribute("less", .text)],
            [name, EntityAttribute("more", .date)],
        ] {
            let error = #expect(throws: EntityError.self) { try file.open(schema: schema(attributes)) }
            #expect(error?.code == .persistence)
        }
        #expect(throws: EntityError.self) { try file.open(schema: schema([name], key: "name")) }
        #expect(try file.open(schema: schema([name, more])).findAll("A").count == 1)
    }
}
