import Foundation
import GRDB
import MobileSync
import Testing

@testable import LocalEntities

@Suite("Entities: encryption") struct EncryptionTests {
    private let file = StoreFile()
    private let key = [UInt8](repeating: 1, count: 32)
    private let other = [UInt8](repeating: 2, count: 32)

    private func code(_ key: [UInt8]?) -> EntityError.Code? {
        do {
            _ = try file.open(key: key)
            return nil
        } catch { return (error as? EntityError)?.code }
    }

    private func contains(_ text: String) throws -> Bool { try file.bytes().range(of: Data(text.utf8)) != nil }

    /// A store that has a secret in each kind of place.
    private func fill(_ store: EntityStore) async throws {
        try store.importOplogs([Sample.oplog("key-1", ["title": "SECRET-original", "priority": 1])], of: "Incident")
        var row = try store.incident("key-1")
        try row.set("title", to: "SECRET-edit")
        try row.set("photo", to: .bytes(Array("SECRET-bytes".utf8)))
        try row.set("place", to: .json("SECRET-json"))
        try store.update(&row)
        try await store.submitPending(&row)
        _ = try store.newLogRecord(level: .info, message: "SECRET-log")
    }

    private func check(_ store: EntityStore) throws {
        let row = try store.incident("key-1")
        #expect(row.fields["title"] == "SECRET-edit" && row.fields["place"] == .json("SECRET-json"))
        #expect(try store.original(of: row)?.fields["title"] == "SECRET-original")
        #expect(try store.logRecords().map(\.message) == ["SECRET-log"])
        #expect(try store.find("Incident", .test("title", .startsWith, "SECRET-e")).count == 1)
        #expect(try store.find("Incident", .test("title", .startsWith, "SECRET-e")).count == 1)
    }

    @Test(
        "with a key, attributes, originals, operations and log records are encrypted; keys and indexes are not")
    func sealed() async throws {
        let store = try file.open(key: key)
        try await fill(store)
        try check(store)
        #expect(try !contains("SECRET") && contains("key-1"))
        #expect(file.submitter.operations.map(\.key) == ["key-1"])
        #expect(code(nil) == .storeKey && code(other) == .storeKey && code(key) == nil)
        file.submitter.forget()
        let again = try file.open(key: key)
        try await again.start()
        let body = try #require(file.submitter.operations.first?.body)
        #expect(String(decoding: body, as: UTF8.self).contains("SECRET-edit"))
    }

    @Test("a readable store is encrypted when it is opened with a key, and no plain text is left")
    func later() async throws {
        try await fill(try file.open())
        #expect(try contains("SECRET-original") && contains("SECRET-log"))
        try check(try file.open(key: key))
        #expect(try !contains("SECRET"))
        #expect(code(nil) == .storeKey)
    }

    @Test("the key can be changed and removed") func change() async throws {
        let store = try file.open(key: key)
        try await fill(store)
        try store.changeEncryptionKey(to: other)
        try check(store)
        #expect(code(key) == .storeKey)
        #expect(throws: EntityError.self) { try store.changeEncryptionKey(to: [1, 2]) }
        try check(try file.open(key: other))
        try file.open(key: other).changeEncryptionKey(to: nil)
        try check(try file.open())
        #expect(try contains("SECRET-edit"))
    }

    @Test("an attribute that gets an index is decrypted, and one that loses it is encrypted") func indexes() throws {
        func schema(isIndexed: Bool) throws -> EntitySchema {
            try EntitySchema([
                EntityType(
                    "A", key: "id",
                    attributes: [
                        EntityAttribute("id", .integer), EntityAttribute("text", .text, isIndexed: isIndexed),
                    ])
            ])
        }
        do {
            let store = try file.open(schema: schema(isIndexed: false), key: key)
            var row = try store.makeEntity("A")
            try row.set("id", to: 1)
            try row.set("text", to: "SECRET")
            try store.create(&row)
        }
        for isIndexed in [true, false, true] {
            let store = try file.open(schema: schema(isIndexed: isIndexed), key: key)
            #expect(try store.find("A", .test("text", .equal, "SECRET")).count == 1)
            #expect(try contains("SECRET") == isIndexed || isIndexed == false)
        }
    }

    @Test("a value that was moved to another place cannot be read there") func moved() throws {
        let store = try file.open(key: key)
        try store.createIncident("1", title: "a")
        try store.createIncident("2", title: "b")
        try store.database.transaction("tampering") { db, _ in
            try db.execute(
                sql: """
                    UPDATE "e_Incident" SET "a_title" =
                        (SELECT "a_title" FROM "e_Incident" WHERE entity_key = '1') WHERE entity_key = '2'
                    """)
        }
        #expect(try store.incident("1").fields["title"] == "a")
        #expect(throws: EntityError.self) { try store.incident("2") }
        #expect(throws: EntityError.self) { try store.find("Incident", .test("title", .equal, "a")) }
    }

    @Test(
        "all kinds of values survive encryption",
        arguments: [
            AttributeValue.null, "", "Grüße", 0, .integer(.min), .integer(.max), .double(-0.5), .bytes([]),
            .bytes([0, 255]),
        ]) func values(value: AttributeValue) throws
    {
        let cipher = try StoreCipher(entityKey: key)
        let column = try FieldColumn.value(of: value)
        let sealed = try FieldColumn.sealed(column, with: cipher, place: "p")
        #expect(try FieldColumn.opened(sealed, with: cipher, place: "p") == column)
        if value != .null {
            #expect(throws: (any Error).self) { try FieldColumn.opened(sealed, with: cipher, place: "q") }
        }
    }
}
