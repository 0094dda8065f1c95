import Foundation
import MobileSync
import Testing

@testable import LocalEntities

@Suite("Entities: callbacks and transactions") struct CallbackTests {
    private let file = StoreFile()

    @Test("a transaction does all of its changes or none, and reports which") func transactions() throws {
        let store = try file.open()
        let result = try store.transaction { transaction in
            var row = try transaction.makeEntity("Incident")
            try row.set("id", to: "1")
            try row.set("title", to: "a")
            try transaction.save(&row)
            return try transaction.findAll("Incident").count
        }
        #expect(result == 1 && file.handler.drain() == ["transactionCommit"])
        struct Stop: Error {}
        #expect(throws: Stop.self) {
            try store.transaction { transaction in
                var row = try transaction.findAll("Incident")[0]
                try transaction.delete(&row)
                #expect(try transaction.findAll("Incident").isEmpty)
                throw Stop()
            }
        }
        #expect(file.handler.drain() == ["transactionRollback"])
        #expect(try store.findAll("Incident").count == 1)
    }

    @Test("inside a transaction the store's own calls are refused, and after it the transaction's calls")
    func misuse() throws {
        let store = try file.open()
        var kept: EntityTransaction?
        try store.transaction { transaction in
            kept = transaction
            let error = #expect(throws: EntityError.self) { try store.findAll("Incident") }
            #expect(error?.code == .persistence)
        }
        let transaction = try #require(kept)
        #expect(throws: EntityError.self) { try transaction.findAll("Incident") }
        var row = try store.makeEntity("Incident")
        #expect(throws: EntityError.self) { try transaction.save(&row) }
        #expect(try store.findAll("Incident").isEmpty)
    }

    @Test("a handler may use the store, and gets the callbacks for its own changes after it has returned")
    func reentry() throws {
        let store = try file.open()
        let path = file.path
        file.handler.onCallback { line in
            guard line == "import 1" else { return }
            let row = try? store.incident("1")
            #expect(row?.fields["title"] == "a", "\(path)")
            try? store.importOplogs([Sample.oplog("2", ["title": "b"])], of: "Incident")
        }
        try store.importOplogs([Sample.oplog("1", ["title": "a"])], of: "Incident")
        file.handler.onCallback { _ in }
        #expect(file.handler.drain() == ["import 1", "importSuccess", "import 2", "importSuccess"])
    }

    @Test("a full store refuses data that does not fit, reports that, and recovers") func storage() throws {
        let store = try file.open(limit: 1_000_000)
        let photo = AttributeValue.bytes([UInt8](repeating: 1, count: 50_000))
        var rows: [Entity] = []
        let error = #expect(throws: EntityError.self) {
            for number in 0..<40 {
                var row = try store.makeEntity("Incident")
                try row.set("id", to: .text("\(number)"))
                try row.set("title", to: "t")
                try row.set("photo", to: photo)
                try store.create(&row)
                rows.append(row)
            }
        }
        #expect(error?.code == .persistence)
        #expect(file.handler.drain() == ["storageSpaceLow"])
        #expect(try store.findAll("Incident").count == rows.count && (15...20).contains(rows.count))
        #expect(throws: EntityError.self) {
            try store.importOplogs(
                [Sample.oplog("x", ["title": .text(String(repeating: "x", count: 200_000))])], of: "Incident")
        }
        for var row in rows.prefix(6) { try store.delete(&row) }
        #expect(file.handler.drain() == ["storageSpaceRecovered"])
        try store.createIncident("new")
    }

    @Test("low storage and recovery are each reported once, with a margin between") func gauge() {
        var gauge = StorageGauge(limit: 1_000)
        let changes = [0, 899, 900, 950, 1_000, 850, 800, 799, 0, 899, 900].map { gauge.measured($0) }
        #expect(
            changes == [.none, .none, .low, .none, .none, .none, .none, .recovered, .none, .none, .low])
    }

    @Test("data that a handler is not interested in has no effect") func silence() throws {
        let silent = SilentHandler()
        let row = try file.open().createIncident("1")
        let record = LogRecord.refusedImport(of: "A", EntityError(.persistence, ""), at: 0)
        let error = EntityError(.persistence, "")
        let steps: [EntitySubscriptionStep] = [.subscribe, .suspend, .resume, .unsubscribe]
        let events: [EntityEvent] =
            [
                .imported(row), .importSucceeded, .replaySucceeded(row), .replayFailed(row, record),
                .operationSucceeded(component: "", name: "", key: ""), .operationFailed(record), .transactionCommitted,
                .transactionRolledBack, .storageSpaceLow, .storageSpaceRecovered,
                .connectionStatusChanged(.roaming, reason: ""), .resetSucceeded(typeName: "A"),
            ] + steps.map { .subscription($0, typeName: "A", failure: nil) }
            + steps.map { .subscription($0, typeName: "A", failure: error) }
        let (queue, recording) = (EventQueue(handler: silent), EventQueue(handler: file.handler))
        for queue in [queue, recording] {
            queue.add(events)
            queue.deliver()
        }
        #expect(file.handler.drain().count == events.count + 1, "an unsubscription is an end too")
        #expect(
            silent.onSynchronize(.init(status: .error, groups: [], userContext: "", reason: "")) == .proceed)
    }
}
