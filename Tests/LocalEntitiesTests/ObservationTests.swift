import Dispatch
import Foundation
import MobileSync
import TestSupport
import Testing

@testable import LocalEntities

@Suite("Entities: observation", .timeLimit(.minutes(2))) struct ObservationTests {
    private let file = StoreFile()

    /// Reads states until one has these keys.
    private func wait(
        for keys: [String], in states: inout EntityObservation<[Entity]>.AsyncIterator
    ) async throws -> [Entity] {
        while let rows = try await states.next() {
            if rows.map({ $0.key.asText }) == keys { return rows }
        }
        throw EntityError(.objectNotFound, "the observation has ended")
    }

    @Test(
        "observe gives the rows now, and again after changes of the app, imports and results", arguments: [true, false])
    func states(isEncrypted: Bool) async throws {
        let store = try file.open(key: isEncrypted ? [UInt8](repeating: 1, count: 32) : nil)
        try store.createIncident("1", title: "leak")
        let query = EntityQuery("Incident").where(.test("title", .startsWith, "l")).sort(by: "title")
        var states = store.observe(query).makeAsyncIterator()
        #expect(try await states.next()?.map(\.key) == ["1"])
        var row = try store.createIncident("2", title: "lost")
        #expect(try await wait(for: ["1", "2"], in: &states).last?.isCreated == true)
        try store.importOplogs([Sample.oplog("3", ["title": "late"], counter: 1)], of: "Incident")
        _ = try await wait(for: ["3", "1", "2"], in: &states)
        try await store.submitPending(&row)
        try await store.result(
            SyncOperationResult(operationID: file.submitter.operations[0].id, isAccepted: true))
        var isPending = true
        while isPending, let rows = try await states.next() { isPending = rows.last?.isPending ?? false }
        #expect(!isPending)
        try store.changeEncryptionKey(to: [UInt8](repeating: 2, count: 32))
        try store.createIncident("4", title: "light")
        _ = try await wait(for: ["3", "1", "4", "2"], in: &states)
    }

    @Test("a reader that is slower than the changes gets the newest state only") func bounded() async throws {
        let store = try file.open()
        var states = store.observe(EntityQuery("Incident")).makeAsyncIterator()
        #expect(try await states.next()?.isEmpty == true)
        for number in 0..<50 { try store.createIncident("\(number)") }
        var count = 0
        while let rows = try await states.next() {
            count += 1
            if rows.count == 50 { break }
        }
        #expect(count <= 50)
    }

    @Test("an observation ends when its task is cancelled") func cancellation() async throws {
        let store = try file.open()
        let (began, signal) = AsyncStream.makeStream(of: Void.self)
        let count = try await withThrowingTaskGroup(of: Int.self) { group in
            group.addTask {
                var count = 0
                for try await _ in store.observe(EntityQuery("Incident")) {
                    count += 1
                    signal.yield()
                }
                return count
            }
            for await _ in began { break }
            group.cancelAll()
            return try await group.reduce(0) { $0 + $1 }
        }
        #expect(count == 1)
    }

    @Test("an invalid query ends the observation with the error of the query") func invalid() async throws {
        let store = try file.open()
        var states = store.observe(EntityQuery("Incident").where(.test("nothing", .equal, 1))).makeAsyncIterator()
        let error = await #expect(throws: EntityError.self) { try await states.next() }
        #expect(error?.code == .noSuchAttribute)
        #expect(try await states.next() == nil)
    }

    @Test("a read does not wait for a writer, and sees what was committed before") func besideWriter() async throws {
        let store = try file.open()
        try store.createIncident("1")
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (inside, entered) = AsyncStream.makeStream(of: Void.self)
            let done = DispatchSemaphore(value: 0)
            group.addTask {
                try await OwnThread.run {
                    try store.transaction { transaction in
                        var row = try transaction.makeEntity("Incident")
                        try row.set("id", to: "2")
                        try row.set("title", to: "t")
                        try transaction.create(&row)
                        entered.yield()
                        done.wait()
                    }
                }
            }
            for await _ in inside { break }
            do {
                defer { done.signal() }
                #expect(try store.findAll("Incident").count == 1)
                let count = try await store.read { snapshot in try snapshot.findAll("Incident").count }
                #expect(count == 1)
            }
            try await group.waitForAll()
        }
        #expect(try await store.read { try $0.findAll("Incident").count } == 2)
    }

    @Test("several calls in one read see one moment") func snapshot() async throws {
        let store = try file.open()
        let (first, second) = try await store.read { snapshot in
            let first = try snapshot.findAll("Incident").count
            let made = DispatchSemaphore(value: 0)
            // A transaction inside a read is refused, but not one of another thread.
            Thread.detachNewThread {
                _ = try? store.createIncident("1")
                made.signal()
            }
            made.wait()
            return (first, try snapshot.findAll("Incident").count)
        }
        #expect(first == 0 && second == 0)
        #expect(try store.findAll("Incident").count == 1)
    }

    @Test("queries by hasLogRecords find the rows with log records, and a child finds its parent")
    func logRecordsAndParents() async throws {
        let store = try file.open()
        for id in ["1", "2"] { try store.createIncident(id) }
        let note = try store.createNote("n", of: "2")
        _ = try store.newLogRecord(level: .info, message: "x", component: "Incident", entityKey: "2")
        #expect(try store.find("Incident", .test("hasLogRecords", .equal, true)).map(\.key) == ["2"])
        #expect(try store.find("Incident", .test("hasLogRecords", .equal, false)).map(\.key) == ["1"])
        #expect(try store.find("Note", .test("hasLogRecords", .equal, true)).isEmpty)
        #expect(try store.parent(of: note, "incident")?.key == "2")
        let typed = try #require(try store.findByPrimaryKey(Note.self, "n"))
        #expect(try store.parent(of: typed, "incident", as: Incident.self)?.id == "2")
        #expect(try store.parent(of: store.createNote("o", of: "9"), "incident") == nil)
        let error = #expect(throws: EntityError.self) { try store.parent(of: note, "nothing") }
        #expect(error?.code == .noSuchAttribute)
    }
}
