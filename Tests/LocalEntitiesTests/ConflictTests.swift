import Foundation
import GRDB
import MobileSync
import Synchronization
import Testing

@testable import LocalEntities

@Suite("Entities: conflicts") struct ConflictTests {
    /// Records the conflicts that a store asks about, and answers with one resolution.
    private final class Decisions: Sendable {
        private let asked = Mutex<[EntityConflict]>([])
        let resolution: @Sendable (EntityConflict) throws -> EntityConflict.Resolution

        init(_ resolution: @escaping @Sendable (EntityConflict) throws -> EntityConflict.Resolution) {
            self.resolution = resolution
        }

        var conflicts: [EntityConflict] { asked.withLock { $0 } }

        @Sendable func resolve(_ conflict: EntityConflict) throws -> EntityConflict.Resolution {
            asked.withLock { $0.append(conflict) }
            return try resolution(conflict)
        }
    }

    private static let resolutions: [(EntityConflict.Resolution, AttributeValue, Bool)] = [
        (.keepMine, "mine", true), (.takeTheirs, "theirs", false),
    ]
    private let file = StoreFile()

    /// A store with an incident of the server, title `base` and priority 1, that the app has changed to title `mine`.
    private func edited(_ decisions: Decisions?, key: [UInt8]? = nil) throws -> EntityStore {
        let store = try file.open(key: key, resolveConflict: decisions.map { $0.resolve })
        try store.importOplogs([Sample.oplog("1", ["title": "base", "priority": 1], counter: 5)], of: "Incident")
        var row = try store.incident("1")
        try row.set("title", to: "mine")
        try store.update(&row)
        return store
    }

    private func importTheirs(_ store: EntityStore, title: JSONValue = "theirs", counter: Int64 = 6) throws {
        try store.importOplogs(
            [Sample.oplog("1", ["title": title, "priority": 2], counter: counter)], of: "Incident")
    }

    private func body(_ operation: SyncOperation) throws -> [String: JSONValue] {
        try JSONValue(parsing: operation.body).members ?? [:]
    }

    private func refuse(_ store: EntityStore, _ number: Int, imported: [UInt8]? = nil) async throws {
        try await store.result(
            SyncOperationResult(
                operationID: file.submitter.operations[number].id, isAccepted: false, code: 409, imported: imported))
    }

    @Test("ENT1: saveAndSubmit stores and submits a row and its children in one call") func saveAndSubmit() async throws
    {
        let store = try file.open()
        var row = try store.makeEntity("Incident")
        try row.set("id", to: "1")
        try row.set("title", to: "leak")
        var note = try store.makeEntity("Note")
        try note.set("id", to: "n")
        try note.set("text", to: "x")
        try row.add(note, to: "notes")
        try await store.saveAndSubmit(&row)
        #expect(row.state.replayPending == 1 && !row.isNew)
        #expect(file.submitter.operations.map(\.key) == ["1"])
        #expect(file.submitter.operations.first?.children.map(\.key) == ["n"])
        var typed = try #require(try store.findByPrimaryKey(Incident.self, "1"))
        typed.title = "burst"
        file.submitter.isDown = true
        // The change waits for the result in flight, so nothing is submitted.
        try await store.saveAndSubmit(&typed)
        #expect(!typed.isDirty && typed.state.replayCounter == 2)
        var other = EntityRow(Incident(id: "2", title: "fire"))
        let outage = await #expect(throws: EntityError.self) { try await store.saveAndSubmit(&other) }
        #expect(outage?.code == .submission && !other.isNew && other.state.replayPending == 1)
    }

    @Test("ENT1: without a resolver an edit keeps the counter of its base, and all three versions can be read")
    func withoutResolver() async throws {
        let store = try edited(nil)
        #expect(try store.conflict(of: store.incident("1")) == nil)
        try importTheirs(store)
        let conflict = try #require(try store.conflict(of: store.incident("1")))
        #expect(conflict.base?.fields["title"] == "base" && conflict.mine.fields["title"] == "mine")
        #expect(conflict.theirs?.fields["title"] == "theirs")
        try importTheirs(store, title: "later", counter: 7)
        let later = try #require(try store.conflict(of: store.incident("1")))
        #expect(later.base?.fields["title"] == "base" && later.theirs?.fields["title"] == "later")
        try await store.submitPendingOperations()
        let sent = try body(file.submitter.operations[0])
        #expect(sent["counter"] == 5 && sent["changed"] == .array(["title"]), "not what only they changed")
    }

    @Test("ENT1: the base survives a restart, also encrypted, and a change of the key") func stored() throws {
        let key = [UInt8](repeating: 1, count: 32)
        let store = try edited(nil, key: key)
        try importTheirs(store)
        // The columns of versions are JSON, and one of them has the name "base".
        for title in ["mine", "theirs", ":\"base\""] {
            #expect(try file.bytes().range(of: Data(title.utf8)) == nil, "\(title) is readable")
        }
        try store.changeEncryptionKey(to: nil)
        let again = try file.open()
        #expect(try again.conflict(of: again.incident("1"))?.base?.fields["title"] == "base")
    }

    @Test("ENT1: a resolver gets base, mine and theirs when a row changes on the server while an edit is pending")
    func threeWay() async throws {
        let decisions = Decisions { .merged($0.merged(preferring: .mine)) }
        let store = try edited(decisions)
        try importTheirs(store)
        let conflict = try #require(decisions.conflicts.first)
        #expect(decisions.conflicts.count == 1)
        #expect(conflict.base?.fields["title"] == "base" && conflict.mine.fields["title"] == "mine")
        #expect(conflict.theirs?.fields["title"] == "theirs")
        #expect(conflict.changedByMe == ["title"] && conflict.changedByThem == ["title", "priority"])
        let row = try store.incident("1")
        #expect(row.fields["title"] == "mine" && row.fields["priority"] == 2 && row.isUpdated)
        #expect(try store.conflict(of: row) == nil && file.submitter.operations.isEmpty, "it was not submitted")
        try await store.submitPendingOperations()
        let sent = try body(file.submitter.operations[0])
        #expect(sent["counter"] == 6 && sent["changed"] == .array(["title"]))
        try importTheirs(store, title: "theirs", counter: 7)
        #expect(decisions.conflicts.count == 1, "the version of the server is the same")
    }

    @Test(
        "ENT1: the resolver's decision counts: mine stays, or theirs replaces it",
        arguments: Self.resolutions)
    func decisions(resolution: EntityConflict.Resolution, title: AttributeValue, isPending: Bool) throws {
        let store = try edited(Decisions { _ in resolution })
        try importTheirs(store)
        let row = try store.incident("1")
        #expect(row.fields["title"] == title && row.isPending == isPending)
        #expect(try store.conflict(of: row) == nil && store.original(of: row)?.fields["title"] == "theirs")
    }

    @Test("ENT1: a merged row that equals the server's version has no edit left") func sameVersion() throws {
        let store = try edited(Decisions { .merged($0.merged(preferring: .theirs)) })
        try importTheirs(store)
        #expect(try !store.incident("1").isPending && store.incident("1").state.replayCounter == 6)
    }

    @Test("ENT1: a change that was refused is decided with the version of the server and submitted again, once")
    func refused() async throws {
        let decisions = Decisions { _ in .keepMine }
        let store = try edited(decisions)
        try await store.submitPendingOperations()
        try importTheirs(store)
        #expect(decisions.conflicts.isEmpty, "the server decides about a change in flight")
        try await refuse(store, 0)
        #expect(decisions.conflicts.count == 1 && file.submitter.operations.count == 2)
        #expect(try body(file.submitter.operations[1])["counter"] == 6)
        try await refuse(store, 1)
        #expect(decisions.conflicts.count == 1 && file.submitter.operations.count == 2, "for another reason")
        #expect(try store.incident("1").isUpdated && !store.hasPendingOperations())
        try await store.submitPendingOperations()
        try await refuse(
            store, 2, imported: Sample.oplog("1", ["title": "newer", "priority": 2], counter: 9))
        #expect(decisions.conflicts.count == 2 && file.submitter.operations.count == 4)
        #expect(try body(file.submitter.operations[3])["counter"] == 9)
    }

    @Test("ENT1: the user decides a refused change: it is sent on the server's version, or dropped")
    func usersDecision() async throws {
        let store = try edited(nil)
        try await store.submitPendingOperations()
        try importTheirs(store)
        try await refuse(store, 0)
        var row = try #require(try store.findByPrimaryKey(Incident.self, "1"))
        let conflict = try #require(try store.conflict(of: row))
        try await store.resolve(&row, conflict, .merged(conflict.merged(preferring: .mine)))
        #expect(row.title == "mine" && row.priority == 2 && row.state.replayPending > 0)
        #expect(try body(file.submitter.operations[1])["counter"] == 6 && store.conflict(of: row) == nil)
        try importTheirs(store, title: "newer", counter: 7)
        try await refuse(store, 1)
        let newer = try #require(try store.conflict(of: row))
        try await store.resolve(&row, newer, .takeTheirs)
        #expect(row.title == "newer" && !row.isPending && file.submitter.operations.count == 2)
        let none = await #expect(throws: EntityError.self) { try await store.resolve(&row, newer, .keepMine) }
        #expect(none?.code == .conflictChanged, "there is no edit")
    }

    @Test("ENT1: a decision about versions that have changed meanwhile is refused, and nothing is overwritten")
    func lateDecision() async throws {
        let store = try edited(nil)
        try importTheirs(store)
        var row = try store.incident("1")
        let seen = try #require(try store.conflict(of: row))
        try importTheirs(store, title: "newer", counter: 7)
        let late = await #expect(throws: EntityError.self) {
            try await store.resolve(&row, seen, .merged(seen.merged(preferring: .theirs)))
        }
        #expect(late?.code == .conflictChanged && file.submitter.operations.isEmpty)
        let now = try #require(try store.conflict(of: row))
        var edit = try store.incident("1")
        try edit.set("title", to: "mine again")
        try store.update(&edit)
        let other = await #expect(throws: EntityError.self) { try await store.resolve(&row, now, .takeTheirs) }
        #expect(other?.code == .conflictChanged)
        #expect(try store.incident("1").fields["title"] == "mine again")
    }

    @Test("ENT1: taking their version of a row leaves the edits of its children")
    func childrenKeepEdits() async throws {
        let store = try edited(nil)
        var row = try store.incident("1")
        var note = try store.makeEntity("Note")
        try note.set("id", to: "n")
        try note.set("text", to: "a child")
        try row.add(note, to: "notes")
        try store.save(&row)
        try importTheirs(store)
        let conflict = try #require(try store.conflict(of: row))
        try await store.resolve(&row, conflict, .takeTheirs)
        #expect(row.fields["title"] == "theirs" && !row.isUpdated)
        #expect(try store.findAll("Note").map(\.isCreated) == [true])
    }

    @Test("ENT1: a decision of the user about a change in flight is sent after its refusal")
    func decisionInFlight() async throws {
        let store = try edited(nil)
        try await store.submitPendingOperations()
        try importTheirs(store)
        var row = try store.incident("1")
        let conflict = try #require(try store.conflict(of: row))
        try await store.resolve(&row, conflict, .keepMine)
        #expect(file.submitter.operations.count == 1)
        try await refuse(store, 0)
        #expect(file.submitter.operations.count == 2)
        #expect(try body(file.submitter.operations[1])["counter"] == 6)
    }

    @Test("ENT1: a row that the server deleted has no theirs, and a row that was created here has no base")
    func missingVersions() throws {
        let decisions = Decisions { $0.theirs == nil ? .takeTheirs : .merged($0.merged(preferring: .theirs)) }
        let store = try edited(decisions)
        try store.importOplogs([Sample.oplog("1", counter: 6, isDeleted: true)], of: "Incident")
        #expect(try store.findAll("Incident").isEmpty && decisions.conflicts.first?.theirs == nil)
        try store.createIncident("2", title: "here")
        try store.importOplogs([Sample.oplog("2", ["title": "there"], counter: 1)], of: "Incident")
        let conflict = try #require(decisions.conflicts.last)
        #expect(conflict.base == nil && conflict.mine.isCreated == false && conflict.theirs?.fields["title"] == "there")
        #expect(try store.incident("2").fields["title"] == "there" && !store.incident("2").isPending)
    }

    @Test("ENT1: a deletion that meets a change is decided too: the row exists again, or stays deleted")
    func deletion() throws {
        for (resolution, isDeleted) in [
            (EntityConflict.Resolution.keepMine, true), (EntityConflict.Resolution.takeTheirs, false),
        ] {
            let file = StoreFile()
            let store = try file.open(resolveConflict: { _ in resolution })
            try store.importOplogs([Sample.oplog("1", ["title": "base"], counter: 5)], of: "Incident")
            var row = try store.incident("1")
            try store.delete(&row)
            try store.importOplogs([Sample.oplog("1", ["title": "theirs"], counter: 6)], of: "Incident")
            #expect(try store.findAll("Incident").isEmpty == isDeleted)
            #expect(try store.pendingRows("Incident").isEmpty == !isDeleted)
        }
    }

    @Test(
        "ENT1: a merge that prefers mine keeps a deletion, and one that prefers theirs ends it",
        arguments: [true, false])
    func mergedDeletion(_ prefersMine: Bool) throws {
        let store = try file.open(resolveConflict: { .merged($0.merged(preferring: prefersMine ? .mine : .theirs)) })
        try store.importOplogs([Sample.oplog("1", ["title": "base"], counter: 5)], of: "Incident")
        var row = try store.incident("1")
        try store.delete(&row)
        try store.importOplogs([Sample.oplog("1", ["title": "theirs"], counter: 6)], of: "Incident")
        #expect(try store.findAll("Incident").isEmpty == prefersMine)
        #expect(try store.pendingRows("Incident").isEmpty == !prefersMine)
    }

    @Test("ENT1: the result of the app's own change is no conflict with a later edit") func ownResult() async throws {
        let decisions = Decisions { _ in .takeTheirs }
        let store = try edited(decisions)
        try await store.submitPendingOperations()
        var row = try store.incident("1")
        try row.set("title", to: "later")
        try store.update(&row)
        try await store.result(
            SyncOperationResult(
                operationID: file.submitter.operations[0].id, isAccepted: true,
                imported: Sample.oplog("1", ["title": "mine", "priority": 2], counter: 6)))
        #expect(decisions.conflicts.isEmpty)
        let stored = try store.incident("1")
        #expect(stored.fields["title"] == "later" && stored.fields["priority"] == 2 && stored.isUpdated)
    }

    @Test("ENT1: an edit after a refusal does not undo what only others have changed")
    func editAfterRefusal() async throws {
        let store = try edited(nil)
        try await store.submitPendingOperations()
        try importTheirs(store, title: "base")
        try await refuse(store, 0)
        var row = try store.incident("1")
        try row.set("title", to: "again")
        try store.update(&row)
        #expect(try store.incident("1").fields["priority"] == 2)
        try await store.submitPendingOperations()
        let sent = try body(file.submitter.operations[1])
        #expect(sent["counter"] == 6 && sent["changed"] == .array(["title"]))
    }

    @Test("ENT1: a refused change is not submitted again with a later edit that was not submitted")
    func draft() async throws {
        let store = try edited(Decisions { _ in .keepMine })
        try await store.submitPendingOperations()
        var row = try store.incident("1")
        try row.set("title", to: "draft")
        try store.update(&row)
        try await refuse(
            store, 0, imported: Sample.oplog("1", ["title": "theirs", "priority": 2], counter: 6))
        #expect(file.submitter.operations.count == 1)
        #expect(try store.incident("1").fields["title"] == "draft" && store.incident("1").isUpdated)
    }

    @Test("ENT1: an invalid row of the resolver leaves the edit as it is, with a log record") func invalidRow() throws {
        let note = try StoreFile().open().makeEntity("Note")
        let store = try edited(Decisions { _ in .merged(note) })
        try importTheirs(store)
        #expect(try store.incident("1").fields["title"] == "mine" && store.logRecords().count == 1)
    }

    @Test("a call of the store inside a read is an error") func misuseOfReads() async throws {
        let store = try edited(nil)
        let error = await #expect(throws: EntityError.self) {
            try await store.read { _ in try store.findAll("Incident") }
        }
        #expect(error?.message.contains("inside a transaction or a read") == true)
    }

    @Test("ENT1: an error of the resolver leaves the edit as it is, with a log record") func failing() throws {
        struct Undecided: Error {}
        let store = try edited(Decisions { _ in throw Undecided() })
        try importTheirs(store)
        #expect(try store.incident("1").fields["title"] == "mine")
        #expect(try store.conflict(of: store.incident("1"))?.theirs?.fields["title"] == "theirs")
        #expect(try store.logRecords().first?.message.contains("Undecided") == true)
    }

    @Test("a store of the version before conflicts is opened with its edits") func migration() throws {
        do {
            let store = try edited(nil)
            try store.database.turn("going back") { db, _ in
                for name in store.schema.types.map(\.name) {
                    try db.execute(
                        sql: """
                            ALTER TABLE "e_\(name)" DROP COLUMN base; ALTER TABLE "e_\(name)" DROP COLUMN has_conflict
                            """)
                }
                try db.execute(
                    sql: """
                        DROP INDEX log_record_row;
                        DELETE FROM grdb_migrations WHERE identifier = '2 base versions'
                        """)
            }
        }
        let store = try file.open()
        #expect(try store.incident("1").fields["title"] == "mine" && store.incident("1").isUpdated)
        try importTheirs(store)
        #expect(try store.conflict(of: store.incident("1"))?.base?.fields["title"] == "base")
    }
}
