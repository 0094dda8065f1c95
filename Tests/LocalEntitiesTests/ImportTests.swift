import Foundation
import MobileSync
import Testing

@testable import LocalEntities

@Suite("Entities: imports") struct ImportTests {
    private let file = StoreFile()

    @Test("rows are created, changed and deleted, by one payload for one row or for several") func versions() throws {
        let store = try file.open()
        let several = Array(
            #"""
            {"entities":[{"key":"1","change":"U","counter":1,"fields":{"title":"a","priority":3,
            "due":"1970-01-01T00:00:05Z","photo":"AQI=","isOpen":true,"cost":2,"place":[1],"unknown":{}}},
            {"key":"2","change":"U","fields":{"title":"b"}},{"key":"1","component":"Note","change":"U",
            "fields":{"incidentID":"1","text":"x"}}]}
            """#.utf8)
        let one = Array(#"{"key":"2","change":"D"}"#.utf8)
        try store.importOplogs([several], of: "Incident")
        #expect(file.handler.drain() == ["import 1", "import 2", "import 1", "importSuccess"])
        let row = try store.incident("1")
        #expect(row.fields["due"] == .date(Date(timeIntervalSince1970: 5)) && row.fields["photo"] == .bytes([1, 2]))
        #expect(row.fields["cost"] == 2.0 && row.fields["place"] == .json(.array([.integer(1)])) && !row.isPending)
        #expect(try store.children(of: row, "notes").count == 1)
        try store.importOplogs([one, Sample.oplog("1", ["priority": .null], counter: 2)], of: "Incident")
        #expect(try store.findAll("Incident").map(\.key) == ["1"])
        #expect(try store.incident("1").fields["priority"] == .null)
        #expect(try store.incident("1").fields["title"] == "a", "a missing attribute stays unchanged")
        #expect(try store.incident("1").state.replayCounter == 2)
    }

    @Test("an older version changes nothing, and restores no deleted row") func counters() throws {
        let store = try file.open()
        func importRow(_ title: JSONValue, _ counter: Int64, isDeleted: Bool = false) throws {
            let oplog = try Sample.oplog("1", ["title": title], counter: counter, isDeleted: isDeleted)
            try store.importOplogs([oplog], of: "Incident")
        }
        try importRow("b", 5)
        try importRow("a", 4)
        #expect(try store.incident("1").fields["title"] == "b")
        try importRow("b2", 5)
        #expect(try store.incident("1").fields["title"] == "b2", "the same again does no harm")
        try importRow("", 6, isDeleted: true)
        try importRow("a", 5)
        #expect(try store.findAll("Incident").isEmpty)
        try importRow("c", 7)
        #expect(try store.incident("1").fields["title"] == "c")
        try importRow("", 6, isDeleted: true)
        #expect(try store.findAll("Incident").count == 1)
    }

    @Test("counters of deletions are removed after 30 days") func tombstones() throws {
        let start = Date(timeIntervalSince1970: 1_000)
        func open(after seconds: Double) throws -> EntityStore {
            try file.open(clock: { start + seconds })
        }
        let old = try Sample.oplog("1", ["title": "a"], counter: 5)
        let store = try open(after: 0)
        try store.importOplogs([Sample.oplog("1", counter: 6, isDeleted: true), old], of: "Incident")
        #expect(try store.findAll("Incident").isEmpty)
        let days = 24 * 3_600.0
        let later = try open(after: 30 * days)
        try later.importOplogs([old], of: "Incident")
        #expect(try later.findAll("Incident").isEmpty)
        let last = try open(after: 30 * days + 1)
        try last.importOplogs([old], of: "Incident")
        #expect(try last.findAll("Incident").count == 1)
    }

    @Test("an edit survives every import, and its original is the server's latest") func edits() async throws {
        let store = try file.open()
        try store.importOplogs([Sample.oplog("1", ["title": "a"], counter: 1)], of: "Incident")
        var row = try store.incident("1")
        try row.set("title", to: "mine")
        try store.update(&row)
        try store.importOplogs([Sample.oplog("1", ["title": "b", "priority": 2], counter: 2)], of: "Incident")
        try store.refresh(&row)
        #expect(row.fields["title"] == "mine" && row.fields["priority"] == .null && row.isUpdated)
        let original = try #require(try store.original(of: row))
        #expect(original.fields["title"] == "b" && original.fields["priority"] == 2 && !original.isPending)
        try store.importOplogs([Sample.oplog("1", counter: 3, isDeleted: true)], of: "Incident")
        try store.refresh(&row)
        #expect(row.isUpdated && row.fields["title"] == "mine")
        #expect(try store.original(of: row) == nil)
        try await store.cancelPending(&row)
        #expect(row.isNew)
        #expect(try store.findAll("Incident").isEmpty)
    }

    @Test("an answer that is older than an import does not undo the import", arguments: [true, false])
    func outdatedAnswer(isDeleted: Bool) async throws {
        let store = try file.open()
        var row = try store.createIncident("1", title: "mine")
        try await store.submitPending(&row)
        try store.importOplogs([Sample.oplog("1", ["title": "mine"], counter: 1)], of: "Incident")
        try store.importOplogs(
            [Sample.oplog("1", ["title": "theirs"], counter: 2, isDeleted: isDeleted)], of: "Incident")
        try await store.result(
            SyncOperationResult(
                operationID: file.submitter.operations[0].id, isAccepted: true,
                imported: Sample.oplog("1", ["title": "mine"], counter: 1)))
        let rows = try store.findAll("Incident")
        #expect(rows.map(\.fields["title"]) == (isDeleted ? [] : ["theirs"]))
        #expect(rows.map(\.state.replayCounter) == (isDeleted ? [] : [2]))
        #expect(try store.pendingRows("Incident").isEmpty && !store.hasPendingOperations())
    }

    static let wrong = [
        "", "x", "[]", "3", #"{"entities":{}}"#, #"{"entities":[1]}"#, #"{"entities":[{"change":"U"}]}"#,
        #"{"key":"1"}"#, #"{"key":"1","change":"X"}"#, #"{"key":[],"change":"U"}"#,
        #"{"key":"1","change":"U","counter":"5","fields":{"title":"a"}}"#,
        #"{"key":"1","change":"U","counter":1.5,"fields":{"title":"a"}}"#,
        #"{"key":"1","change":"U","fields":[]}"#, #"{"key":"1","change":"U","fields":{}}"#,
        #"{"key":"1","change":"U","fields":{"title":5}}"#, #"{"key":"1","change":"U","fields":{"title":null}}"#,
        #"{"key":"1","change":"U","fields":{"title":"a\u0000"}}"#,
        #"{"key":"1","change":"U","fields":{"title":"a","priority":99999999999999999999}}"#,
        #"{"key":"1","change":"U","fields":{"title":"a","photo":"?"}}"#,
        #"{"key":"1","change":"U","fields":{"title":"a","due":"yesterday"}}"#,
        #"{"key":"1","change":"U","component":"Nothing","fields":{"title":"a"}}"#,
    ]

    @Test("an unusable payload is logged, skipped, and delays nothing", arguments: wrong) func refused(
        payload: String
    ) throws {
        let store = try file.open()
        try store.importOplogs([Array(payload.utf8), Sample.oplog("2", ["title": "b"])], of: "Incident")
        #expect(try store.findAll("Incident").map(\.key) == ["2"])
        let records = try store.logRecords()
        #expect(records.map(\.operation) == ["import"] && records.map(\.level) == [.error])
        #expect(records.allSatisfy { !$0.message.contains("99999") }, "a record has no values")
    }

    @Test("a key that is a number may be written as one; any other number is refused") func numberKeys() throws {
        let store = try file.open()
        let payloads = [
            #"{"key":5,"change":"U","fields":{"name":"a"}}"#, #"{"key":"6","change":"U","fields":{"name":"b"}}"#,
            #"{"key":"06","change":"U","fields":{"name":"c"}}"#, #"{"key":"x","change":"U","fields":{"name":"d"}}"#,
        ]
        try store.importOplogs(payloads.map { Array($0.utf8) }, of: "Technician")
        #expect(try store.findAll("Technician").map(\.key) == [5, 6])
        #expect(try store.logRecords().count == 2)
        #expect(throws: EntityError.self) { try store.importOplogs([], of: "Nothing") }
    }
}
