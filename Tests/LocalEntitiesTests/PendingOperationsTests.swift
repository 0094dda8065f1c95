import Foundation
import MobileSync
import Testing

@testable import LocalEntities

/// The guide's `while (hasPendingOperations) sleep` must end.
@Suite("Entities: hasPendingOperations is true only while requests wait for the server") struct PendingOperationsTests {
    private let file = StoreFile()

    private func answer(_ operation: SyncOperation, isAccepted: Bool = true) -> SyncOperationResult {
        SyncOperationResult(operationID: operation.id, isAccepted: isAccepted, code: isAccepted ? 200 : 409)
    }

    @Test("ENT2: hasPendingOperations is false for rows that were never submitted") func neverSubmitted() async throws {
        let store = try file.open()
        var row = try store.createIncident("1")
        #expect(try !store.hasPendingOperations() && !store.pendingRows("Incident").isEmpty)
        try await store.submitPending(&row)
        #expect(try store.hasPendingOperations() && store.hasPendingOperations("service"))
        #expect(try !store.hasPendingOperations("people"))
    }

    @Test("ENT2: hasPendingOperations is false after each result, accepted or refused", arguments: [true, false])
    func afterResult(isAccepted: Bool) async throws {
        let store = try file.open()
        var row = try store.createIncident("1")
        try await store.submitPending(&row)
        try await store.result(answer(file.submitter.operations[0], isAccepted: isAccepted))
        #expect(try !store.hasPendingOperations() && store.pendingRows("Incident").isEmpty == isAccepted)
        try await store.submitPendingOperations()
        #expect(try store.hasPendingOperations() == !isAccepted, "the refused change is sent again")
    }

    @Test("ENT2: a family waits until its last part has a result, and a withdrawn one does not wait")
    func family() async throws {
        let store = try file.open()
        var row = try store.createIncident("1")
        try store.createNote("n", of: "1")
        try await store.submitPending(&row)
        let operation = file.submitter.operations[0]
        try await store.result(answer(operation.children[0]))
        #expect(try store.hasPendingOperations())
        file.submitter.send([operation.id])
        try await store.cancelPending(&row)
        #expect(try !store.hasPendingOperations())
    }

    @Test("ENT2, ENT6: submitted log records belong to hasPendingOperations") func logRecords() async throws {
        let store = try file.open()
        _ = try store.newLogRecord(level: .warn, message: "odd")
        #expect(try !store.hasPendingOperations())
        try await store.submitLogRecords()
        #expect(try store.hasPendingOperations() && !store.hasPendingOperations("service"))
        try await store.result(answer(file.submitter.operations[0], isAccepted: false))
        #expect(try !store.hasPendingOperations())
    }

    @Test("ENT2, ENT8: saved parameters belong to hasPendingOperations, each to the group of its type")
    func parameters() throws {
        let store = try file.open()
        file.submitter.pendingParameters = ["Incident"]
        #expect(try store.hasPendingOperations() && store.hasPendingOperations("service"))
        #expect(try store.hasPendingOperations(of: "Incident") && !store.hasPendingOperations(of: "Note"))
        #expect(try !store.hasPendingOperations("people"))
        file.submitter.pendingParameters = ["Other"]
        #expect(try !store.hasPendingOperations())
    }

    @Test("ENT2: a request for keys belongs to hasPendingOperations") func keyRequest() async throws {
        final class Source: KeyRangeSource {
            let store: EntityStore
            init(_ store: EntityStore) { self.store = store }
            func requestRange(reporting use: [KeyUse]) async throws -> KeyRange {
                #expect(try store.hasPendingOperations() && !store.hasPendingOperations("service"))
                return KeyRange(first: 1, last: 2)
            }
        }
        let store = try file.open()
        let keys = KeyGenerator(store: store, source: Source(store))
        try await keys.refill(whenBelow: 1)
        #expect(try keys.remaining() == 2 && !store.hasPendingOperations())
    }

    @Test("ENT2: the calls for one class submit, cancel and see only its operations") func oneClass() async throws {
        let store = try file.open()
        try store.createIncident("1")
        var technician = try store.makeEntity("Technician")
        try technician.set("id", to: 4)
        try technician.set("name", to: "n")
        try store.create(&technician)
        try await store.submitPendingOperations(of: "Technician")
        #expect(file.submitter.operations.map(\.key) == ["4"])
        #expect(try store.hasPendingOperations(of: "Technician") && !store.hasPendingOperations(of: "Incident"))
        try await store.cancelPendingOperations(of: "Incident")
        #expect(try store.findAll("Incident").isEmpty && store.hasPendingOperations(of: "Technician"))
        try await store.cancelPendingOperations(of: "Technician")
        #expect(try !store.hasPendingOperations() && file.submitter.operations.isEmpty)
        let error = await #expect(throws: EntityError.self) { try await store.submitPendingOperations(of: "Draft") }
        #expect(error?.code == .noSuchClass)
    }
}
