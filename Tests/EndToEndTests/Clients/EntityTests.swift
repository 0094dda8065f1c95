import Foundation
import LocalEntities
import MobileSync
import TestSupport
import Testing

extension SteadySystem {
    /// Entities over the real client, with a tenant that the test plays.
    @Suite("Entities of devices")
    struct EntityTests {
        private typealias Incident = EntityDevice.Incident
        private typealias Note = EntityDevice.Note

        let stack: Stack

        init() throws { stack = try Stack.running }

        @Test(
            "an offline edit of parent and children, over a restart, is sent in one call; all devices get the result")
        func offline() async throws {
            let entities = EntityTenant()
            let tenant = OperationTenant { call, _ in entities.answer(to: call) }
            try await tenant.serving(stack.operationsPort) {
                let key = UUID().uuidString
                do {
                    let phone = try EntityDevice(stack, device: "entity1-a", user: "entity1")
                    var incident = try phone.store.create(Incident(id: key, title: "leak"))
                    for number in 0..<2 {
                        _ = try phone.store.create(Note(id: "\(key)-\(number)", incidentID: key, text: "n\(number)"))
                    }
                    try await phone.store.submitPending(&incident)
                    incident.title = "large leak"
                    try phone.store.update(&incident)
                    #expect(try phone.client.pendingOperations().map(\.children.count) == [2])
                }
                let phone = try EntityDevice(stack, device: "entity1-a", user: "entity1")
                let tablet = try EntityDevice(stack, device: "entity1-b", user: "entity1", gateway: 1)
                #expect(try phone.title(key) == "large leak")
                try await phone.running {
                    try await tablet.running {
                        try await eventually("the tablet has it", within: .seconds(20)) {
                            try tablet.title(key) == "leak" && tablet.store.findAll(Note.self).count == 2
                        }
                        // A change after the submission stays pending until it is submitted itself.
                        try await eventually("the phone has the answer", within: .seconds(20)) {
                            try phone.store.findByPrimaryKey(Incident.self, .text(key))?.pendingChange == .update
                        }
                        try await phone.store.submitPendingOperations()
                        try await phone.waitUntilSettled(key, "large leak")
                        try await tablet.waitUntilSettled(key, "large leak")
                    }
                }
                #expect(tenant.calls.map { $0.question["operation"] } == ["create", "update"])
                #expect(tenant.calls[0].children.count == 2 && tenant.calls[0].question["userId"] == "entity1")
                #expect(try phone.store.findAll(Note.self).map(\.text) == ["n0", "n1"])
                #expect(entities.row("Incident/\(key)")?["title"] == "large leak")
                let row = try #require(try phone.store.findByPrimaryKey(Incident.self, .text(key)))
                #expect(row.state.replayCounter == 104, "the server's")
            }
        }

        @Test(
            "a replay failure arrives as a log record and keeps the edit, over a restart; corrected, the edit succeeds")
        func failure() async throws {
            let entities = EntityTenant()
            let tenant = OperationTenant { call, _ in
                call.body.contains("forbidden")
                    ? OperationTenant.Answer(status: 409, body: #"{"code": 423, "message": "it is locked"}"#)
                    : entities.answer(to: call)
            }
            try await tenant.serving(stack.operationsPort) {
                let key = UUID().uuidString
                do {
                    let phone = try EntityDevice(stack, device: "entity2-a", user: "entity2")
                    var incident = try phone.store.create(Incident(id: key, title: "leak"))
                    try await phone.running {
                        try await phone.store.submitPendingOperations()
                        try await phone.waitUntilSettled(key, "leak")
                        try phone.store.refresh(&incident)
                        incident.title = "forbidden"
                        try phone.store.update(&incident)
                        try await phone.store.submitPending(&incident)
                        try await eventually("it is refused", within: .seconds(20)) {
                            try phone.store.hasLogRecords(LogFilter(component: "Incident", entityKey: key))
                        }
                    }
                }
                let phone = try EntityDevice(stack, device: "entity2-a", user: "entity2")
                let record = try #require(try phone.store.logRecords().first)
                #expect(record.code == 423 && record.message == "it is locked" && record.operation == "update")
                #expect(record.level == .error && !record.requestID.isEmpty)
                var incident = try #require(try phone.store.findByPrimaryKey(Incident.self, .text(key)))
                #expect(incident.isPending && incident.title == "forbidden" && incident.state.replayFailure > 0)
                #expect(try phone.store.original(of: incident)?.title == "leak")
                incident.title = "allowed"
                try phone.store.update(&incident)
                try await phone.running {
                    try await phone.store.submitPending(&incident)
                    try await phone.waitUntilSettled(key, "allowed")
                }
                #expect(entities.row("Incident/\(key)")?["title"] == "allowed")
                #expect(try phone.store.logRecords().count == 1, "each answer counts once")
            }
        }

        @Test("an edit that is cancelled before it was sent never reaches the tenant; a later one does")
        func cancelled() async throws {
            let entities = EntityTenant()
            let tenant = OperationTenant { call, _ in entities.answer(to: call) }
            try await tenant.serving(stack.operationsPort) {
                let keys = (0..<2).map { _ in UUID().uuidString }
                let phone = try EntityDevice(stack, device: "entity3-a", user: "entity3")
                var first = try phone.store.create(Incident(id: keys[0], title: "wrong"))
                try await phone.store.submitPending(&first)
                try await phone.store.cancelPending(&first)
                #expect(try phone.client.pendingOperations().isEmpty && phone.title(keys[0]) == nil)
                var second = try phone.store.create(Incident(id: keys[1], title: "right"))
                try await phone.store.submitPending(&second)
                try await phone.running { try await phone.waitUntilSettled(keys[1], "right") }
                #expect(tenant.calls.map { $0.question["entityKey"] } == [keys[1]])
            }
        }

        @Test("operations grant keys, each range to one device, and the used keys are reported")
        func keys() async throws {
            let tenant = OperationTenant { call, number in
                let first = call.body.contains(#""used":2"#) ? 200 : 100
                return OperationTenant.Answer(body: #"{"import": {"first": \#(first), "last": \#(first + 1)}}"#)
            }
            try await tenant.serving(stack.operationsPort) {
                let phone = try EntityDevice(stack, device: "entity4-a", user: "entity4")
                let keys = KeyGenerator(
                    store: phone.store,
                    source: KeyRangeOperations(client: phone.client, keys: "Incident", userID: "entity4"))
                try await phone.running {
                    try await keys.refill(whenBelow: 1)
                    #expect(try [keys.generateId(), keys.generateId()] == [100, 101])
                    try await keys.refill(whenBelow: 1)
                    #expect(try keys.generateId() == 200)
                }
                #expect(tenant.calls.map { $0.question["entityKey"] } == ["Incident", "Incident"])
                #expect(tenant.calls.map { $0.question["component"] } == ["KEY_RANGE", "KEY_RANGE"])
            }
        }
    }
}
