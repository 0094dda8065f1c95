import Foundation
import MobileSync
import Testing

@testable import LocalEntities

@Suite("Entities: submission") struct SubmissionTests {
    private let file = StoreFile()

    private func accept(
        _ operation: SyncOperation, imported: [UInt8]? = nil, message: String = ""
    ) -> SyncOperationResult {
        SyncOperationResult(operationID: operation.id, isAccepted: true, message: message, imported: imported)
    }

    private func refuse(_ operation: SyncOperation, code: Int = 409) -> SyncOperationResult {
        SyncOperationResult(
            operationID: operation.id, isAccepted: false, code: code, level: "ERROR", message: "no: \(code)",
            requestID: "r1", at: Date(timeIntervalSince1970: 77))
    }

    @Test("a row is sent once with all its attributes, and success stores the server's counter")
    func success() async throws {
        let store = try file.open()
        var row = try store.createIncident("1", title: "leak")
        try await store.submitPending(&row)
        try await store.submitPending(&row)
        #expect(row.state.replayPending == 1 && row.isCreated)
        let operation = try #require(file.submitter.operations.first)
        #expect(file.submitter.operations.count == 1)
        #expect([operation.component, operation.key, operation.name] == ["Incident", "1", "create"])
        let body = try JSONValue(parsing: operation.body).members
        #expect(body?["fields"]?.members?["title"] == .text("leak") && body?["fields"]?.members?["priority"] == .null)
        let imported = try Sample.oplog("1", ["title": "LEAK"], counter: 30)
        try await store.result(accept(operation, imported: imported))
        try store.refresh(&row)
        #expect(!row.isPending && row.state.replayCounter == 30 && row.fields["title"] == "LEAK")
        #expect(try !store.hasPendingOperations() && !store.hasLogRecords())
        #expect(file.handler.drain() == ["replaySuccess 1", "import 1", "importSuccess"])
        try await store.result(accept(operation, imported: Sample.oplog("1", ["title": "again"])))
        #expect(try store.incident("1").fields["title"] == "LEAK", "an answer counts once")
    }

    @Test("a failure leaves the row pending, with a log record; it can be changed and submitted again")
    func failure() async throws {
        let store = try file.open()
        try store.importOplogs([Sample.oplog("1", ["title": "a"], counter: 5)], of: "Incident")
        var row = try store.incident("1")
        try row.set("title", to: "b")
        try store.update(&row)
        try await store.submitPending(&row)
        try await store.result(refuse(file.submitter.operations[0]))
        try store.refresh(&row)
        #expect(row.isUpdated && row.state.replayFailure == 6 && row.state.replayPending == 0)
        let record = try #require(try store.logRecords(LogFilter(component: "Incident", entityKey: "1")).first)
        #expect(record.code == 409 && record.level == .error && record.message == "no: 409" && !record.isOwn)
        #expect(
            record.operation == "update" && record.requestID == "r1" && record.timestamp.timeIntervalSince1970 == 77)
        #expect(file.handler.drain().suffix(1) == ["replayFailure 1 409"])
        #expect(try store.original(of: row)?.fields["title"] == "a")
        try store.importOplogs([Sample.oplog("1", ["title": "c"], counter: 9)], of: "Incident")
        try row.set("title", to: "d")
        try store.update(&row)
        try await store.submitPending(&row)
        let bodies = try file.submitter.operations.map { try JSONValue(parsing: $0.body).members }
        #expect(bodies[0]?["counter"] == .integer(5) && bodies[0]?["changed"] == .array([.text("title")]))
        #expect(bodies[1]?["counter"] == .integer(9), "the app has read the server's version")
        try await store.result(accept(file.submitter.operations[1]))
        #expect(try !store.incident("1").isPending && store.incident("1").fields["title"] == "d")
    }

    @Test("a submission while an operation is in flight is sent after its answer", arguments: [true, false])
    func afterAnswer(isAccepted: Bool) async throws {
        let store = try file.open()
        var row = try store.createIncident("1", title: "a")
        try await store.submitPending(&row)
        try row.set("title", to: "b")
        try store.update(&row)
        try await store.submitPending(&row)
        #expect(file.submitter.operations.count == 1)
        let first = file.submitter.operations[0]
        try await store.result(isAccepted ? accept(first) : refuse(first))
        #expect(file.submitter.operations.map(\.name) == ["create", isAccepted ? "update" : "create"])
        try store.refresh(&row)
        #expect(try store.original(of: row)?.fields["title"] == (isAccepted ? "a" : nil))
        try await store.result(accept(file.submitter.operations[1]))
        #expect(try !store.incident("1").isPending && store.incident("1").fields["title"] == "b")
    }

    @Test("a child is submitted through its parent, all in one operation") func family() async throws {
        let store = try file.open()
        try store.createIncident("1")
        try store.createNote("a", of: "1")
        try store.createNote("b", of: "1")
        var mark = try store.makeEntity("Mark")
        try mark.set("id", to: 7)
        try mark.set("noteID", to: "b")
        try store.create(&mark)
        try store.createIncident("2")
        try await store.submitPending(&mark)
        let operation = try #require(file.submitter.operations.first)
        #expect(file.submitter.operations.count == 1 && operation.key == "1" && operation.name == "create")
        #expect(operation.children.map(\.key) == ["a", "b", "7"], "in one list, parents before their children")
        #expect(operation.children.allSatisfy { $0.name == "create" && $0.children.isEmpty })
        #expect(mark.state.replayPending == 1)
        try await store.result(refuse(operation.children[0]))
        #expect(try store.incident("1").isCreated, "its own answer is outstanding")
        try await store.result(accept(operation))
        #expect(try store.incident("1").pendingChange == .parent)
        #expect(try store.pendingRows("Note").map(\.key) == ["a"] && store.pendingRows("Mark").isEmpty)
        try await store.submitPendingOperations()
        let next = file.submitter.operations.dropFirst().map { ($0.key, $0.name, $0.children.map(\.key)) }
        #expect(next.map(\.0) == ["1", "2"] && next[0].1 == "children" && next[0].2 == ["a"])
        try await store.result(accept(file.submitter.operations[1]))
        #expect(try !store.incident("1").isPending)
    }

    @Test("a family that is too large for one operation is sent in several, each with its own answer")
    func largeFamily() async throws {
        let store = try file.open()
        var row = try store.createIncident("1", title: String(repeating: "x", count: 150_000))
        for number in 0..<250 { try store.createNote("n\(number)", of: "1") }
        var big = try store.createNote("big", of: "1")
        try big.set("text", to: .text(String(repeating: "y", count: 150_000)))
        try store.update(&big)
        try await store.submitPending(&row)
        let operations = file.submitter.operations
        #expect(operations.map(\.name) == ["create", "children", "children"])
        #expect(operations.map(\.children.count) == [100, 100, 51])
        #expect(operations.allSatisfy { $0.key == "1" && $0.component == "Incident" && $0.fault == nil })
        #expect(operations.flatMap { $0.children.map(\.key) } == (0..<250).map { "n\($0)" } + ["big"])
        try await store.result(accept(operations[0]))
        try await store.result(refuse(operations[1]))
        try await store.result(accept(operations[2]))
        #expect(try store.pendingRows("Note").map(\.key) == (100..<200).map { .text("n\($0)") })
        #expect(try store.incident("1").pendingChange == .parent)
        var title = try store.incident("1")
        try title.set("title", to: .text(String(repeating: "z", count: 194_000)))
        try store.update(&title)
        try await store.submitPendingOperations()
        let next = file.submitter.operations.dropFirst(3)
        #expect(next.map(\.name) == ["update", "children"] && next.allSatisfy { $0.fault == nil })
        #expect(next.reduce(0) { $0 + $1.children.count } == 100)
        for operation in next { try await store.result(accept(operation)) }
        #expect(try store.pendingRows("Incident").isEmpty && !store.hasPendingOperations())
    }

    @Test("an operation that is too large for the service fails on the device as a replay failure, and delays no other")
    func tooLarge() async throws {
        let store = try file.open(userID: "u1")
        var row = try store.createIncident("1", title: String(repeating: "x", count: 200_000))
        try store.createIncident("2")
        try await store.submitPendingOperations()
        #expect(file.submitter.operations.map(\.key) == ["2"] && file.submitter.users == ["u1"])
        try store.refresh(&row)
        #expect(row.isPending && row.state.replayFailure == row.state.replayCounter)
        let record = try #require(try store.logRecords().first)
        #expect(record.code == 400 && record.entityKey == "1" && record.message.contains("bytes"))
        #expect(file.handler.drain().last == "replayFailure 1 400")
        try row.set("title", to: "short")
        try store.update(&row)
        try await store.submitPending(&row)
        #expect(file.submitter.operations.map(\.key) == ["2", "1"])
    }

    @Test("all pending rows, of a group or in all, are sent in the order of their first changes")
    func order() async throws {
        let store = try file.open()
        for id in ["b", "a", "c"] { try store.createIncident(id) }
        var technician = try store.makeEntity("Technician")
        try technician.set("id", to: 4)
        try technician.set("name", to: "n")
        try store.create(&technician)
        var row = try store.incident("b")
        try row.set("title", to: "later")
        try store.update(&row)
        try await store.submitPendingOperations("people")
        #expect(file.submitter.operations.map(\.key) == ["4"])
        try await store.submitPendingOperations()
        #expect(file.submitter.operations.map(\.key) == ["4", "b", "a", "c"])
    }

    @Test("operations of the app's own are checked, sent at once, and reported") func performing() async throws {
        let store = try file.open()
        try store.createIncident("1")
        func code(_ operation: String, key: AttributeValue? = "1", _ parameters: [String: AttributeValue]) async
            -> EntityError.Code?
        {
            do {
                try await store.perform(operation, of: "Incident", key: key, parameters: parameters)
                return nil
            } catch { return error.code }
        }
        #expect(await code("nothing", [:]) == .noSuchOperation)
        #expect(await code("assign", ["nothing": 1]) == .noSuchParameter)
        #expect(await code("assign", ["technician": "x"]) == .wrongDataType)
        #expect(await code("assign", [:]) == .wrongDataType)
        #expect(await code("assign", key: "9", ["technician": 1]) == .objectNotFound)
        #expect(await code("assign", ["technician": 1]) == nil)
        #expect(await code("assign", key: nil, ["technician": 2]) == nil)
        let operations = file.submitter.operations
        #expect(operations.map(\.name) == ["assign", "assign"] && operations.map(\.key) == ["1", "-"])
        let body = try JSONValue(parsing: operations[0].body).members
        #expect(body?["parameters"] == .object(["technician": .integer(1), "why": .null]))
        #expect(try store.incident("1").state.replayPending == 0, "the row is as it was")
        try await store.result(accept(operations[0]))
        try await store.result(refuse(operations[1], code: 403))
        #expect(file.handler.drain() == ["operationSuccess Incident.assign 1", "operationFailure assign 403"])
        #expect(try store.logRecords(LogFilter(level: .error)).map(\.code) == [403])
    }

    // MARK: Cancelling

    @Test("cancelling restores the server's version, and removes rows that were created")
    func cancelling() async throws {
        let store = try file.open()
        try store.importOplogs([Sample.oplog("1", ["title": "a"], counter: 5)], of: "Incident")
        var row = try store.incident("1")
        try row.set("title", to: "b")
        try store.update(&row)
        try store.importOplogs([Sample.oplog("1", ["title": "c"], counter: 6)], of: "Incident")
        #expect(try store.incident("1").fields["title"] == "b", "an import loses no edit")
        var note = try store.createNote("n", of: "1")
        try await store.cancelPending(&row)
        #expect(!row.isPending && !row.isNew && row.fields["title"] == "c" && row.state.replayFailure == 0)
        try await store.cancelPending(&row)
        #expect(try store.findAll("Note").isEmpty, "children are cancelled with their parent")
        #expect(throws: EntityError.self) { try store.refresh(&note) }
        try store.delete(&row)
        try await store.cancelPending(&row)
        #expect(try store.incident("1").fields["title"] == "c")
        var created = try store.createIncident("2")
        try await store.cancelPending(&created)
        #expect(created.isNew)
        #expect(try store.findAll("Incident").count == 1)
    }

    @Test("an operation that was not sent is cancelled; after sending, its answer is imported")
    func cancellingSubmitted() async throws {
        let store = try file.open()
        var (first, second) = (try store.createIncident("1"), try store.createIncident("2"))
        try await store.submitPendingOperations()
        let operations = file.submitter.operations
        file.submitter.send([operations[1].id])
        try await store.cancelPending(&first)
        try await store.cancelPending(&second)
        #expect(file.submitter.operations.map(\.key) == ["2"])
        #expect(try store.findAll("Incident").isEmpty && !store.hasPendingOperations())
        try await store.result(accept(operations[1]))
        let late = try store.incident("2")
        #expect(!late.isPending && late.fields["title"] == "t", "the server has it, so it is here")
        try await store.result(accept(operations[0]))
        #expect(try store.findAll("Incident").count == 1, "no row waits for that one")
    }

    @Test("one call cancels everything, the app's own operations too") func cancellingAll() async throws {
        let store = try file.open()
        try store.createIncident("1")
        try store.createNote("n", of: "1")
        try await store.perform("assign", of: "Incident", key: nil, parameters: ["technician": 1])
        try await store.submitPendingOperations()
        #expect(file.submitter.operations.count == 2)
        try await store.cancelPendingOperations("people")
        #expect(try store.hasPendingOperations() && file.submitter.operations.count == 2)
        try await store.cancelPendingOperations()
        #expect(try !store.hasPendingOperations() && file.submitter.operations.isEmpty)
    }

    @Test("a cancelled child does not stop its family's operation, which is in flight")
    func cancellingChild() async throws {
        let store = try file.open()
        var row = try store.createIncident("1")
        var note = try store.createNote("n", of: "1")
        try await store.submitPending(&row)
        try await store.cancelPending(&note)
        #expect(file.submitter.operations.count == 1)
        try await store.result(accept(file.submitter.operations[0]))
        #expect(try store.findAll("Note").map(\.isPending) == [false], "the server has it now")
        #expect(try !store.incident("1").isPending)
    }

    // MARK: Crashes and outages

    @Test("a marked row that could not be submitted is submitted at the next start, once") func outage() async throws {
        do {
            let store = try file.open()
            var row = try store.createIncident("1")
            file.submitter.isDown = true
            let error = await #expect(throws: EntityError.self) { try await store.submitPending(&row) }
            #expect(error?.code == .submission)
            #expect(try store.incident("1").state.replayPending == 1)
            file.submitter.isDown = false
            file.submitter.failsAfterTaking = true
            await #expect(throws: EntityError.self) { try await store.start() }
            file.submitter.failsAfterTaking = false
        }
        let id = try #require(file.submitter.operations.first?.id)
        let store = try file.open()
        try await store.start()
        #expect(file.submitter.operations.map(\.id) == [id], "it is recognised by its id")
        file.submitter.forget()
        try await store.start()
        #expect(file.submitter.operations.map(\.id) == [id], "and is submitted again when the submitter has lost it")
        try await store.result(accept(file.submitter.operations[0]))
        file.submitter.forget()
        try await store.start()
        #expect(file.submitter.operations.isEmpty)
    }

    @Test("a cancellation during an outage takes effect at the next start, and the operation is never sent")
    func cancelOutage() async throws {
        do {
            let store = try file.open()
            var row = try store.createIncident("1")
            try await store.submitPending(&row)
            file.submitter.isDown = true
            await #expect(throws: EntityError.self) { try await store.cancelPending(&row) }
            #expect(try store.findAll("Incident").isEmpty)
        }
        file.submitter.isDown = false
        let store = try file.open()
        try await store.start()
        #expect(file.submitter.operations.isEmpty)
        file.submitter.forget()
        try await store.start()
        #expect(file.submitter.operations.isEmpty)
    }

    @Test("concurrent tasks that create and submit send each row once") func concurrent() async throws {
        let store = try file.open()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    var row = try store.createIncident("\(number)")
                    try await store.submitPending(&row)
                    try await store.submitPendingOperations()
                }
            }
            try await group.waitForAll()
        }
        #expect(Set(file.submitter.operations.map(\.key)).count == 40 && file.submitter.operations.count == 40)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for operation in file.submitter.operations {
                for _ in 0..<2 {
                    group.addTask {
                        try await store.result(SyncOperationResult(operationID: operation.id, isAccepted: true))
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try !store.hasPendingOperations())
        #expect(file.handler.drain().filter { $0.hasPrefix("replaySuccess") }.count == 40)
    }

    @Test("submissions beyond the limit of one pass are all sent, in order") func bound() async throws {
        let store = try file.open()
        let count = EntityLimits.submissionsAtOnce * 2 + 1
        try store.transaction { transaction in
            for number in 0..<count {
                var row = try transaction.makeEntity("Incident")
                try row.set("id", to: .text("\(number)"))
                try row.set("title", to: "t")
                try transaction.create(&row)
            }
        }
        try await store.submitPendingOperations()
        #expect(file.submitter.operations.map(\.key) == (0..<count).map(String.init))
        #expect(file.submitter.calls == 3)
    }
}
