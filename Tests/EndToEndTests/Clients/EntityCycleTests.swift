import Foundation
import LocalEntities
import MobileSync
import TestSupport
import Testing

extension SteadySystem {
    /// Further features of entities over the real client: the app's own operations, subscriptions, steps, keys,
    /// queries.
    ///
    /// A later push of another type, the marker, shows that an earlier push is not delivered.
    @Suite("Entities of devices: the whole cycle")
    struct EntityCycleTests {
        private typealias Incident = EntityDevice.Incident
        private typealias Note = EntityDevice.Note

        private static let storeKey = [UInt8](repeating: 7, count: 32)

        let stack: Stack

        init() throws { stack = try Stack.running }

        /// Pushes the state of a row, as the backend does.
        private func pushRow(_ user: String, _ type: String, _ key: String, _ fields: [String: String]) async throws {
            let caller = Caller(apis: stack.apis, instance: Stack.clientInstance)
            _ = try await caller.push(
                type, to: user, id: UUID().uuidString, payload: EntityTenant.oplog(type, key, fields))
        }

        /// Pushes a note and waits until the device has it.
        private func marks(_ device: EntityDevice, _ user: String, _ key: String) async throws {
            try await pushRow(user, "Note", key, ["incidentID": "1", "text": "marker"])
            try await eventually("the note \(key) is here", within: .seconds(20)) {
                try device.store.findByPrimaryKey(Note.self, .text(key)) != nil
            }
        }

        // MARK: Operations

        @Test(
            "a named operation and a delete are sent in order, all devices lose the row; log records are sent too")
        func deletion() async throws {
            let entities = EntityTenant()
            let tenant = OperationTenant { call, _ in entities.answer(to: call) }
            try await tenant.serving(stack.operationsPort) {
                let key = UUID().uuidString
                let tablet = try EntityDevice(stack, device: "cycle1-b", user: "cycle1", gateway: 1)
                try await tablet.running {
                    do {
                        let phone = try EntityDevice(stack, device: "cycle1-a", user: "cycle1")
                        _ = try phone.store.create(Incident(id: key, title: "leak"))
                        try await phone.running {
                            try await phone.store.submitPendingOperations()
                            try await phone.waitUntilSettled(key, "leak")
                            try await tablet.waitUntilSettled(key, "leak")
                        }
                    }
                    let phone = try EntityDevice(stack, device: "cycle1-a", user: "cycle1")
                    let record = try await Self.workOffline(phone, key)
                    #expect(try phone.title(key) == nil && tablet.title(key) == "leak" && tenant.calls.count == 1)
                    try await phone.running {
                        try await eventually("all is settled", within: .seconds(20)) {
                            try !phone.store.hasPendingOperations()
                                && phone.store.logRecords().allSatisfy { !$0.isOwn }
                        }
                        try await eventually("the tablet has lost it", within: .seconds(20)) {
                            try tablet.title(key) == nil
                        }
                    }
                    #expect(phone.told.lines == ["operationSuccess Incident.rename \(key)", "replaySuccess \(key)"])
                    #expect(try phone.store.logRecords().count == 2)
                    #expect(entities.logs.first?.messageId == record.messageID)
                }
                let calls = tenant.calls.filter { $0.question["component"] == "Incident" }
                try #require(calls.map { $0.question["operation"] } == ["create", "rename", "delete"])
                #expect(calls[1].body.contains("large leak") && calls[2].body.contains("counter"))
                #expect(entities.row("Incident/\(key)") == nil)
                #expect(entities.logs.map(\.message) == ["the pump is loud", "battery low"])
                #expect(entities.logs.map(\.level) == ["WARN", "DEBUG"] && entities.logs.map(\.code) == [404, 200])
                #expect(entities.logs.first?.entityKey == key && entities.logs.first?.operation == "visit")
            }
        }

        /// Renames and deletes an incident, writes two log records, and submits all of it.
        ///
        /// - Returns: the first record.
        private static func workOffline(_ phone: EntityDevice, _ key: String) async throws -> LogRecord {
            try await phone.store.perform(
                "rename", of: "Incident", key: .text(key), parameters: ["title": "large leak"])
            var incident = try #require(try phone.store.findByPrimaryKey(Incident.self, .text(key)))
            try phone.store.delete(&incident)
            try await phone.store.submitPending(&incident)
            #expect(incident.pendingChange == .delete)
            let record = try phone.store.newLogRecord(
                level: .warn, message: "the pump is loud", code: 404, component: "Incident", entityKey: key,
                operation: "visit")
            _ = try phone.store.newLogRecord(level: .debug, message: "battery low")
            try await phone.store.submitLogRecords()
            return record
        }

        @Test("one call cancels all pending operations, named ones too; none of them reaches the tenant")
        func cancelAll() async throws {
            let entities = EntityTenant()
            let tenant = OperationTenant { call, _ in entities.answer(to: call) }
            try await tenant.serving(stack.operationsPort) {
                let keys = (0..<3).map { _ in UUID().uuidString }
                do {
                    let phone = try EntityDevice(stack, device: "cycle2-a", user: "cycle2")
                    _ = try phone.store.create(Incident(id: keys[0], title: "leak"))
                    try await phone.running {
                        try await phone.store.submitPendingOperations()
                        try await phone.waitUntilSettled(keys[0], "leak")
                    }
                }
                let phone = try EntityDevice(stack, device: "cycle2-a", user: "cycle2")
                var incident = try #require(try phone.store.findByPrimaryKey(Incident.self, .text(keys[0])))
                incident.title = "large leak"
                try phone.store.update(&incident)
                _ = try phone.store.create(Incident(id: keys[1], title: "wrong"))
                try await phone.store.perform(
                    "rename", of: "Incident", key: .text(keys[0]), parameters: ["title": "noise"])
                try await phone.store.submitPendingOperations()
                #expect(try Set(phone.client.pendingOperations().map(\.name)) == ["create", "rename", "update"])
                try await phone.store.cancelPendingOperations()
                #expect(try phone.client.pendingOperations().isEmpty && !phone.store.hasPendingOperations())
                #expect(try phone.title(keys[0]) == "leak" && phone.title(keys[1]) == nil)
                _ = try phone.store.create(Incident(id: keys[2], title: "right"))
                try await phone.store.submitPendingOperations()
                try await phone.running { try await phone.waitUntilSettled(keys[2], "right") }
                #expect(tenant.calls.map { $0.question["entityKey"] } == [keys[0], keys[2]])
            }
        }

        // MARK: Subscriptions

        @Test(
            "subscriptions: suspended, no data is applied, over a restart too; resumed, it is; unsubscribed, all goes")
        func subscriptions() async throws {
            let user = "cycle3"
            do {
                let phone = try EntityDevice(stack, device: "cycle3-a", user: user)
                try await phone.running {
                    try await pushRow(user, "Incident", "1", ["title": "one"])
                    try await phone.waitUntilSettled("1", "one")
                    try await phone.synchroniser.suspendSubscription("Incident")
                    try await pushRow(user, "Incident", "2", ["title": "two"])
                    try await marks(phone, user, "a")
                    #expect(try phone.title("2") == nil)
                }
                #expect(phone.told.lines == ["suspendSuccess Incident"])
            }
            let phone = try EntityDevice(stack, device: "cycle3-a", user: user)
            try await phone.running {
                try await eventually("it has caught up", within: .seconds(20)) { phone.client.isCaughtUp }
                try await marks(phone, user, "b")
                #expect(try phone.title("1") == "one" && phone.title("2") == nil)
                try await phone.synchroniser.resumeSubscription("Incident")
                try await phone.waitUntilSettled("2", "two")
                try await phone.synchroniser.unsubscribe("Incident")
                #expect(try phone.store.findAll(Incident.self).isEmpty)
                try await pushRow(user, "Incident", "3", ["title": "three"])
                try await marks(phone, user, "c")
                #expect(try phone.store.findAll(Incident.self).isEmpty && phone.store.findAll(Note.self).count == 3)
                try await phone.synchroniser.subscribe("Incident")
                for (key, title) in [("1", "one"), ("2", "two"), ("3", "three")] {
                    try await phone.waitUntilSettled(key, title)
                }
            }
            #expect(
                phone.told.lines == [
                    "resumeSuccess Incident", "unsubscribeSuccess Incident", "subscriptionEnd Incident",
                    "subscribeSuccess Incident",
                ])
        }

        @Test(
            "a reset keeps edits and reloads the rest; a recovery brings all again; invalid requests are reported")
        func reset() async throws {
            let user = "cycle4"
            let titles = ["1": "one", "2": "two", "3": "three"]
            for (key, title) in titles { try await pushRow(user, "Incident", key, ["title": title]) }
            let phone = try EntityDevice(stack, device: "cycle4-a", user: user)
            try await phone.running {
                for (key, title) in titles { try await phone.waitUntilSettled(key, title) }
                var incident = try #require(try phone.store.findByPrimaryKey(Incident.self, .text("1")))
                incident.title = "mine"
                try phone.store.update(&incident)
                try await phone.confirmsAll(of: "Incident")
                let before = phone.told.imports.count
                try await phone.synchroniser.reset("Incident")
                try await eventually("all rows are back", within: .seconds(20)) {
                    Set(phone.told.imports.dropFirst(before)) == ["1", "2", "3"]
                }
                #expect(try phone.title("1") == "mine" && phone.title("2") == "two" && phone.title("3") == "three")
                #expect(try phone.store.original(of: incident)?.title == "one")
                try await phone.confirmsAll(of: "Incident")
                let afterReset = phone.told.imports.count
                try await phone.synchroniser.recover("Incident")
                try await eventually("all rows arrived again", within: .seconds(20)) {
                    Set(phone.told.imports.dropFirst(afterReset)) == ["1", "2", "3"]
                }
                #expect(try phone.title("1") == "mine" && phone.store.findAll(Incident.self).count == 3)
            }
            let synchroniser = phone.synchroniser
            await #expect(throws: EntityError.self) { try await synchroniser.suspendSubscription("Nowhere") }
            await #expect(throws: EntityError.self) { try await synchroniser.resumeSubscription("Nowhere") }
            await #expect(throws: EntityError.self) { try await synchroniser.unsubscribe("Nowhere") }
            await #expect(throws: EntityError.self) { try await synchroniser.subscribe("Nowhere") }
            #expect(
                phone.told.lines == [
                    "resetSuccess Incident", "suspendFailure Nowhere", "resumeFailure Nowhere",
                    "unsubscribeFailure Nowhere", "subscribeFailure Nowhere",
                ])
        }

        @Test("steps of a synchronisation: CANCEL ends it before data moves, CONTINUE leads to FINISHING")
        func steps() async throws {
            let entities = EntityTenant()
            let tenant = OperationTenant { call, _ in entities.answer(to: call) }
            try await tenant.serving(stack.operationsPort) {
                let (user, key) = ("cycle5", UUID().uuidString)
                try await pushRow(user, "Incident", "1", ["title": "one"])
                let phone = try EntityDevice(stack, device: "cycle5-a", user: user)
                _ = try phone.store.create(Incident(id: key, title: "mine"))
                try await phone.store.submitPendingOperations()
                phone.synchroniser.stopBackgroundSynchronization()
                phone.told.cancel(at: .uploading)
                try await phone.running {
                    phone.synchroniser.beginSynchronize(["default"], context: "first")
                    try await eventually("it is cancelled", within: .seconds(20)) {
                        phone.told.steps.last?.status == .error && phone.client.status == .notAvailable
                    }
                    #expect(try phone.title("1") == nil && tenant.calls.isEmpty)
                    phone.synchroniser.beginSynchronize(["default"], context: "second")
                    try await eventually("it has caught up", within: .seconds(20)) { phone.client.isCaughtUp }
                    try await phone.waitUntilSettled("1", "one")
                    try await phone.waitUntilSettled(key, "mine")
                }
                let steps = phone.told.steps
                #expect(
                    steps.map(\.status.rawValue) == [
                        "STARTING", "UPLOADING", "ERROR", "STARTING", "UPLOADING", "DOWNLOADING", "FINISHING",
                    ])
                #expect(steps.map(\.userContext) == (0..<7).map { $0 < 3 ? "first" : "second" })
                #expect(steps.allSatisfy { $0.groups == ["default"] })
            }
        }

        // MARK: Encryption

        private func sealedDevice(_ key: [UInt8]?) throws -> EntityDevice {
            try EntityDevice(
                stack, device: "cycle6-a", user: "cycle6", storeKey: Self.storeKey, encryptionKey: key)
        }

        /// The error code when the encrypted store is opened with this key; nil when it opens.
        private func refusal(of key: [UInt8]?) -> EntityError.Code? {
            do {
                _ = try sealedDevice(key)
                return nil
            } catch { return (error as? EntityError)?.code }
        }

        /// Whether a file of the encrypted store, or SQLite's log beside it, contains the text.
        private func isReadable(_ text: String) throws -> Bool {
            let names = ["entities", "sync"].flatMap { ["cycle6-a-\($0).sqlite", "cycle6-a-\($0).sqlite-wal"] }
            return try names.map { stack.folder.appending(path: $0) }
                .filter { FileManager.default.fileExists(atPath: $0.path) }
                .contains { try Data(contentsOf: $0).range(of: Data(text.utf8)) != nil }
        }

        @Test("with keys, no file contains data in the clear; a wrong key is refused, another key keeps all data")
        func encryption() async throws {
            let entities = EntityTenant()
            let tenant = OperationTenant { call, _ in entities.answer(to: call) }
            let vault = try KeyVault.create(
                file: stack.folder.appending(path: "cycle6-vault"), pin: "1234", iterations: 1_000)
            let (first, second) = (try vault.key(), [UInt8](repeating: 9, count: 32))
            let key = UUID().uuidString
            try await pushRow("cycle6", "Incident", "1", ["title": "SECRET one"])
            try await tenant.serving(stack.operationsPort) {
                do {
                    let phone = try sealedDevice(first)
                    _ = try phone.store.create(Incident(id: key, title: "SECRET mine"))
                    try await phone.store.submitPendingOperations()
                    _ = try phone.store.newLogRecord(level: .info, message: "SECRET log")
                    #expect(try !isReadable("SECRET"))
                    try await phone.running {
                        try await phone.waitUntilSettled("1", "SECRET one")
                        try await phone.waitUntilSettled(key, "SECRET mine")
                    }
                    #expect(entities.row("Incident/\(key)")?["title"] == "SECRET mine")
                    #expect(try !isReadable("SECRET") && isReadable(key), "keys stay readable")
                }
                vault.lock()
                let locked = #expect(throws: EntityError.self) { try vault.key() }
                let wrong = #expect(throws: EntityError.self) { try vault.unlock(pin: "4321") }
                #expect(locked?.code == .vault && wrong?.code == .vault)
                #expect(refusal(of: nil) == .storeKey && refusal(of: second) == .storeKey)
                try vault.unlock(pin: "1234")
                do {
                    let phone = try sealedDevice(vault.key())
                    try phone.store.changeEncryptionKey(to: second)
                    #expect(try phone.title("1") == "SECRET one")
                    try await pushRow("cycle6", "Incident", "2", ["title": "SECRET two"])
                    try await phone.running { try await phone.waitUntilSettled("2", "SECRET two") }
                }
                #expect(refusal(of: first) == .storeKey)
                let phone = try sealedDevice(second)
                #expect(try phone.title("1") == "SECRET one" && phone.title("2") == "SECRET two")
                #expect(try phone.title(key) == "SECRET mine")
                #expect(try phone.store.logRecords().map(\.message) == ["SECRET log"])
                #expect(try !isReadable("SECRET"))
            }
        }

        // MARK: Queries

        @Test("queries find the server's data by conditions, pages, counts and joins, in an encrypted store too")
        func queries() async throws {
            let user = "cycle7"
            let titles = ["1": "leak in hall 2", "2": "leak in hall 1", "3": "fire", "4": "noise", "5": "smell"]
            for (key, title) in titles { try await pushRow(user, "Incident", key, ["title": title]) }
            for (key, incident, text) in [("a", "1", "pump"), ("b", "1", "valve"), ("c", "3", "alarm")] {
                try await pushRow(user, "Note", key, ["incidentID": incident, "text": text])
            }
            let phone = try EntityDevice(stack, device: "cycle7-a", user: user)
            let tablet = try EntityDevice(
                stack, device: "cycle7-b", user: user, gateway: 1, storeKey: Self.storeKey,
                encryptionKey: [UInt8](repeating: 9, count: 32))
            for device in [phone, tablet] {
                try await device.running {
                    try await eventually("all is here", within: .seconds(20)) {
                        try device.store.findAll(Incident.self).count == 5 && device.store.findAll(Note.self).count == 3
                    }
                }
                try Self.check(device.store)
            }
        }

        private static func check(_ store: EntityStore) throws {
            let leak = EntityCondition.test("title", .startsWith, "leak")
            let fire = EntityCondition.test("title", .equal, "fire")
            let hallOne = EntityCondition.test("title", .like, "%1")
            let valve = EntityCondition.test("n.text", .contains, "alv")
            let hallTwo = EntityCondition.test("i.title", .endsWith, "2")
            let all = EntityQuery("Incident")
            func ids(_ query: EntityQuery) throws -> [String] {
                try store.findWithQuery(query).map { try EntityRow<Incident>($0).id }
            }
            let burning = all.where(leak || fire).sort(by: "title", descending: true)
            #expect(try ids(burning) == ["1", "2", "3"])
            #expect(try ids(burning.page(skip: 1, take: 1)) == ["2"])
            #expect(try store.countWithQuery(burning) == 3)
            #expect(try ids(all.where(leak && !hallOne)) == ["1"])
            #expect(try ids(all.where(!(leak || fire)).sort(by: "title")) == ["4", "5"])
            #expect(try store.findAll(Incident.self, skip: 3, take: 5).count == 2)
            #expect(try ids(all.join("notes", as: "n").where(valve)) == ["1"])
            let notes = RecordQuery(Note.self).join("incident", as: "i").where(RecordCondition(hallTwo))
            #expect(try store.findWithQuery(notes.sort(by: \.text)).map(\.text) == ["pump", "valve"])
            let counts = EntityQuery("Note").select(.attribute("incidentID"), .count).group(by: "incidentID")
            let expected: [[AttributeValue]] = [["1", 2], ["3", 1]]
            #expect(try store.executeQuery(counts.sort(by: "incidentID")).rows == expected)
        }
    }
}
