import Foundation
import MobileSync
import Testing

@testable import LocalEntities

@Suite("Entities: rows") struct EntityRowsTests {
    private let file = StoreFile()

    private func code(_ body: () throws -> Void) -> EntityError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? EntityError)?.code
        }
    }

    @Test("a row is new, created, dirty, updated and deleted in turn") func states() throws {
        let store = try file.open()
        var row = try store.makeEntity("Incident")
        #expect(row.isNew && !row.isPending && row.pendingChange == .nothing)
        try row.set("id", to: "1")
        try row.set("title", to: "leak")
        #expect(row.isDirty)
        try store.save(&row)
        #expect(!row.isNew && !row.isDirty && row.isCreated && row.isPending && row.state.replayCounter == 1)
        try store.importOplogs([Sample.oplog("2", ["title": "fire"], counter: 7)], of: "Incident")
        var second = try store.incident("2")
        #expect(!second.isPending && second.state.replayCounter == 7)
        try second.set("title", to: "smoke")
        #expect(second.isDirty && !second.isUpdated, "in memory only")
        #expect(try store.incident("2").value("title") == "fire")
        try store.save(&second)
        #expect(!second.isDirty && second.isUpdated && second.state.replayCounter == 8)
        try store.save(&second)
        #expect(second.state.replayCounter == 8, "nothing was changed")
        try store.delete(&second)
        #expect(second.isDeleted && second.isPending)
        #expect(try store.findByPrimaryKey("Incident", "2") == nil)
        #expect(try store.findAll("Incident").map(\.key) == ["1"])
        try store.delete(&row)
        #expect(row.isNew && !row.isPending, "the server never received it")
    }

    @Test("all state survives a restart") func restart() throws {
        var row = try file.open().createIncident("1", title: "Grüße 🚒")
        let due = Date(timeIntervalSince1970: 1_700_000_000.125)
        do {
            let store = try file.open()
            try row.set("priority", to: .integer(.max))
            try row.set("cost", to: 3)
            try row.set("isOpen", to: true)
            try row.set("due", to: .date(due))
            try row.set("photo", to: .bytes([]))
            try row.set("place", to: .json(.object(["a": .array([.null, .number(1.5), .text("\u{0}")])])))
            try store.update(&row)
        }
        let found = try file.open().incident("1")
        #expect(found == row && found.state.replayCounter == 2)
        #expect(try found.value("due").asDate == due)
        #expect(try found.value("cost").asDouble == 3)
        #expect(try found.value("photo").asBytes == [])
    }

    @Test("records of Swift types are the same rows") func records() throws {
        let store = try file.open()
        let incident = Incident(
            id: "1", title: "leak", priority: 2, cost: 1.5, isOpen: false, due: Date(timeIntervalSince1970: 5),
            photo: Data([1, 2]), place: .init(latitude: 48.1, name: "München"))
        var row = try store.create(incident)
        #expect(row.isCreated && !row.isDirty && row.record == incident)
        #expect(try store.incident("1").value("place").asJSON?.members?["name"] == .text("München"))
        row.title = "burst"
        row.place = nil
        #expect(row.isDirty)
        try store.save(&row)
        let found = try #require(try store.findByPrimaryKey(Incident.self, "1"))
        #expect(found.title == "burst" && found.place == nil && found.priority == 2 && !row.isDirty)
        #expect(try store.find(Incident.self, \.priority == 2).count == 1)
        #expect(try store.findAll(Incident.self).map(\.record) == [row.record])
        #expect(code { _ = try EntityRow<Note>(store.incident("1")) } == .wrongDataType)
        try store.delete(&row)
        #expect(row.isNew)
    }

    @Test("errors have Sybase's names") func errors() throws {
        let store = try file.open()
        #expect(code { _ = try store.makeEntity("Nothing") } == .noSuchClass)
        var row = try store.createIncident("1")
        #expect(code { try row.set("nothing", to: 1) } == .noSuchAttribute)
        #expect(code { _ = try row.value("nothing") } == .noSuchAttribute)
        #expect(code { try row.set("priority", to: "high") } == .wrongDataType)
        #expect(code { try row.set("title", to: .null) } == .wrongDataType)
        #expect(code { try row.set("title", to: "a\u{0}b") } == .wrongDataType)
        #expect(code { try row.set("cost", to: .double(.nan)) } == .wrongDataType)
        let unbounded = AttributeValue.date(Date(timeIntervalSince1970: 1e300))
        #expect(code { try row.set("due", to: unbounded) } == .wrongDataType)
        #expect(code { try store.createIncident("1") } == .persistence)
        #expect(code { _ = try store.create(Incident(id: "2", title: "a\u{0}")) } == .wrongDataType)
        var other = try store.makeEntity("Incident")
        #expect(code { try store.create(&other) } == .wrongDataType)
        try other.set("id", to: "other")
        #expect(code { try store.refresh(&other) } == .objectNotFound, "it was never saved")
        try row.set("id", to: "2")
        #expect(code { try store.update(&row) } == .persistence, "a key is for good")
        row = try store.incident("1")
        try store.delete(&row)
        row = Entity(type: Sample.incident, row: StoredRow(key: "1", fields: ["id": "1"], state: .localOnly))
        #expect(code { try store.update(&row) } == .objectNotFound)
        #expect(code { try store.delete(&row) } == .objectNotFound)
        #expect(code { try store.refresh(&row) } == .objectNotFound)
        #expect(code { _ = try store.findByPrimaryKey("Incident", 1) } == .wrongDataType)
    }

    @Test("an update writes only the changed attributes, and keeps changes by others") func fieldwise() throws {
        let store = try file.open()
        try store.createIncident("1")
        var (first, second) = (try store.incident("1"), try store.incident("1"))
        try first.set("title", to: "a")
        try second.set("priority", to: 5)
        try store.update(&first)
        try store.update(&second)
        #expect(try second.value("title") == "a")
        #expect(try store.incident("1").value("priority") == 5)
        try store.refresh(&first)
        #expect(first == second)
    }

    @Test("saving a parent saves its children and theirs, and the parent then has pending children")
    func children() throws {
        let store = try file.open()
        try store.importOplogs([Sample.oplog("1", ["title": "leak"])], of: "Incident")
        var row = try store.incident("1")
        var note = try store.makeEntity("Note")
        try note.set("id", to: "n")
        try note.set("text", to: "x")
        var mark = try store.makeEntity("Mark")
        try mark.set("id", to: 1)
        try note.add(mark, to: "marks")
        try row.add(note, to: "notes")
        #expect(throws: EntityError.self) { try row.add(mark, to: "notes") }
        #expect(throws: EntityError.self) { try row.add(mark, to: "marks") }
        try store.save(&row)
        #expect(row.pendingChange == .parent && row.isPending && !row.isUpdated)
        #expect(row.children["notes"]?.first?.isCreated == true)
        let notes = try store.children(of: row, "notes")
        #expect(notes.map(\.key) == ["n"] && notes[0].pendingChange == .create)
        #expect(try store.children(of: notes[0], "marks").map(\.key) == [1])
        #expect(try store.pendingRows("Incident").map(\.pendingChange) == [.parent])
        var gone = notes[0]
        try store.delete(&gone)
        try store.refresh(&row)
        #expect(row.pendingChange == .nothing)
        #expect(try store.findAll("Mark").isEmpty, "children go with their parent")
    }

    @Test("a child that gets another parent makes that parent pending") func moved() throws {
        let store = try file.open()
        let incidents = try ["1", "2"].map { try Sample.oplog($0, ["title": "t"]) }
        try store.importOplogs(incidents, of: "Incident")
        var note = try store.createNote("n", of: "1")
        #expect(try store.incident("1").pendingChange == .parent)
        try note.set("incidentID", to: "2")
        try store.update(&note)
        #expect(try store.incident("1").pendingChange == .nothing)
        #expect(try store.incident("2").pendingChange == .parent)
        try store.createNote("m", of: "3")
        try store.importOplogs([Sample.oplog("3", ["title": "late"])], of: "Incident")
        #expect(try store.incident("3").pendingChange == .parent, "a parent may come after its child")
    }

    @Test("local-only rows are never pending, and a deletion is final") func localOnly() async throws {
        let store = try file.open()
        var row = try store.makeEntity("Draft")
        try row.set("id", to: .integer(store.localKeys.generateId()))
        try store.save(&row)
        try row.set("text", to: "x")
        try store.save(&row)
        #expect(!row.isPending && !row.isUpdated)
        try await store.submitPending(&row)
        #expect(try !store.hasPendingOperations() && file.submitter.operations.isEmpty)
        try store.importOplogs([Sample.oplog("1", counter: 1)], of: "Draft")
        #expect(try store.logRecords().map(\.operation) == ["import"], "it gets no import")
        try store.delete(&row)
        #expect(try store.findAll("Draft", skip: 0).isEmpty)
    }

    @Test("a store of another user, a key of another length and a foreign file are refused") func opening() throws {
        _ = try file.open(userID: "u1")
        #expect(code { _ = try file.open(userID: "u2") } == .foreignStore)
        #expect(code { _ = try file.open(userID: "u1", key: [1]) } == .invalidArgument)
        #expect(code { _ = try file.open(userID: "u1", limit: 10) } == .invalidArgument)
        let other = StoreFile()
        try Data(repeating: 7, count: 5_000).write(to: URL(filePath: other.path))
        let store = try other.open()
        #expect(store.replacedDamagedStore)
        #expect(FileManager.default.fileExists(atPath: other.path + ".damaged"))
        try store.createIncident("1")
        #expect(try !other.open().replacedDamagedStore)
    }
}
