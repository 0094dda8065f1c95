import Foundation
import GRDB
import Logging
import MobileSync
import Synchronization
import Testing

@testable import LocalEntities

@Suite("Entities: synchronisation") struct SynchroniserTests {
    private let file = StoreFile()
    private let feed = FakeFeed()
    private let logger = Logger(label: "entities") { _ in SwiftLogNoOpLogHandler() }

    private func synchroniser(
        _ store: EntityStore, pause: @escaping @Sendable (Duration) async throws -> Void = { _ in }
    ) -> EntitySynchroniser<FakeFeed> {
        EntitySynchroniser(store: store, feed: feed, logger: logger, pause: pause)
    }

    private func batch(_ key: String, user: String? = nil) throws -> EntityBatch {
        EntityBatch(payloads: [try Sample.oplog(key, ["title": "a"])], userID: user)
    }

    /// Runs the synchroniser until the body returns.
    private func running(
        _ synchroniser: EntitySynchroniser<FakeFeed>, _ body: () async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await synchroniser.run() }
            try await body()
            group.cancelAll()
            try await group.waitForAll()
        }
    }

    @Test(
        "data is stored, then confirmed; the connection's state is reported; submissions from before a crash are sent")
    func feeding() async throws {
        let store = try file.open(userID: "u1")
        file.submitter.isDown = true
        var row = try store.createIncident("mine")
        try? await store.submitPending(&row)
        file.submitter.isDown = false
        let (statuses, batch) = (feed.statuses.continuation, try batch("1", user: "u1"))
        try await running(synchroniser(store)) {
            var confirmed = feed.confirmed.stream.makeAsyncIterator()
            feed.yield(batch, of: "Incident")
            #expect(await confirmed.next() == "Incident")
            let title = try store.incident("1").fields["title"]
            #expect(title == "a")
            statuses.yield((.lowStorage, "full"))
            #expect(await confirmed.next() == "status")
        }
        #expect(file.submitter.operations.map(\.key) == ["mine"])
        #expect(file.handler.drain() == ["import 1", "importSuccess", "connectionStatusChange 7 full"])
        store.connectionStatusChanged(to: .flightMode)
        #expect(file.handler.drain() == ["connectionStatusChange 3 "])
    }

    @Test("answers are requested for the schema's components and the store's user, and confirmed after they are stored")
    func answers() async throws {
        let store = try file.open(userID: "u1")
        var row = try store.createIncident("1")
        try await store.submitPending(&row)
        let operation = try #require(file.submitter.operations.first)
        let answer = SyncOperationResult(operationID: operation.id, isAccepted: false, code: 409, level: "ERROR")
        try await running(synchroniser(store)) {
            var confirmed = feed.confirmed.stream.makeAsyncIterator()
            feed.results.continuation.yield(answer)
            #expect(await confirmed.next() == "answer \(operation.id)")
            let codes = try store.logRecords().map(\.code)
            #expect(codes == [409])
            // The answer is stored, although the later submission cannot be sent now.
            file.submitter.isDown = true
            feed.results.continuation.yield(answer)
            #expect(await confirmed.next() == "answer \(operation.id)")
        }
        try store.refresh(&row)
        #expect(row.isPending && row.state.replayPending == 0)
        let wanted = feed.answersWanted
        #expect(wanted.map(\.0) == [["Incident", "LogRecord", "Mark", "Note", "Technician"]])
        #expect(wanted.map(\.1) == ["u1"])
        #expect(file.submitter.users.allSatisfy { $0 == "u1" })
    }

    @Test("an answer that cannot be written to the disk is retried, and not confirmed")
    func answerDiskFull() async throws {
        let store = try file.open(limit: 1_000_000)
        var row = try store.createIncident("1")
        try await store.submitPending(&row)
        let message = String(repeating: "x", count: 2_000_000)
        let operation = try #require(file.submitter.operations.first)
        feed.results.continuation.yield(
            SyncOperationResult(operationID: operation.id, isAccepted: false, code: 409, message: message))
        struct Enough: Error {}
        let waits = Mutex(0)
        let synchroniser = synchroniser(store) { _ in
            try waits.withLock { count in
                count += 1
                if count == 3 { throw Enough() }
            }
        }
        await #expect(throws: Enough.self) { try await synchroniser.run() }
        try store.refresh(&row)
        #expect(row.state.replayPending == 1, "it comes again")
        feed.confirmed.continuation.finish()
        for await confirmed in feed.confirmed.stream { Issue.record("\(confirmed) was confirmed") }
    }

    @Test("a store's operations belong to its user, whichever user is signed in") func realSubmitter() async throws {
        let path = file.path + ".sync"
        defer { for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) } }
        let client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: 1, instanceID: "app", deviceID: "d", storePath: path), logger: logger)
        let store = try EntityStore(
            EntityStoreConfiguration(path: file.path, schema: Sample.schema(), userID: "u1"), submitter: client)
        try client.bind(userID: "u2", sessionID: "s")
        for id in ["1", "2"] {
            var row = try store.createIncident(id)
            try await store.submitPending(&row)
        }
        #expect(try client.pendingOperations().isEmpty)
        var row = try store.incident("2")
        try await store.cancelPending(&row)
        try client.bind(userID: "u1", sessionID: "s")
        #expect(try client.pendingOperations().map(\.key) == ["1"])
        try await store.start()
        #expect(try client.pendingOperations().map(\.key) == ["1"], "recognised by its id")
    }

    @Test("a store of another user accepts no data, and reports that") func foreign() async throws {
        let store = try file.open(userID: "u1")
        feed.yield(try batch("1", user: "u2"), of: "Incident")
        let error = await #expect(throws: EntityError.self) { try await synchroniser(store).run() }
        #expect(error?.code == .foreignStore)
        #expect(try store.findAll("Incident").isEmpty)
    }

    @Test("a batch that cannot be written to the disk is retried with back-off, and no later batch overtakes it")
    func diskFull() async throws {
        let store = try file.open(limit: 1_000_000)
        let waits = Mutex<[Duration]>([])
        let big = EntityBatch(
            payloads: [try Sample.oplog("0", ["title": .text(String(repeating: "x", count: 2_000_000))])], userID: nil)
        let rest = try batch("1")
        feed.yield(big, of: "Incident")
        feed.yield(rest, of: "Incident")
        struct Enough: Error {}
        let synchroniser = synchroniser(store) { wait in
            try waits.withLock { waits in
                waits.append(wait)
                if waits.count == 7 { throw Enough() }
            }
        }
        await #expect(throws: Enough.self) { try await synchroniser.run() }
        #expect(waits.withLock { $0 } == [1, 2, 4, 8, 16, 30, 30].map { .seconds($0) })
        #expect(try store.findAll("Incident").isEmpty)
    }

    @Test("subscriptions are reported, and a type that was unsubscribed is empty and comes anew")
    func subscriptions() async throws {
        let store = try file.open()
        let synchroniser = synchroniser(store)
        try store.importOplogs([Sample.oplog("1", ["title": "a"])], of: "Incident")
        try store.createIncident("2")
        try await synchroniser.suspendSubscription("Incident")
        try await synchroniser.resumeSubscription("Incident")
        try await synchroniser.subscribe("Incident")
        #expect(feed.drainCalls() == ["suspend Incident", "resume Incident", "resume Incident"])
        try await synchroniser.unsubscribe("Incident")
        #expect(try store.findAll("Incident").isEmpty && !store.hasPendingOperations())
        try store.importOplogs([Sample.oplog("1", ["title": "a"])], of: "Incident")
        #expect(try store.findAll("Incident").isEmpty, "batches in transit are skipped")
        try await synchroniser.subscribe("Incident")
        #expect(feed.drainCalls() == ["unsubscribe Incident", "resume Incident", "recover Incident"])
        try store.importOplogs([Sample.oplog("1", ["title": "a"])], of: "Incident")
        #expect(try store.findAll("Incident").count == 1)
        let told = file.handler.drain().filter { !$0.hasPrefix("import") }
        #expect(
            told == [
                "suspendSuccess Incident", "resumeSuccess Incident", "subscribeSuccess Incident",
                "unsubscribeSuccess Incident", "subscriptionEnd Incident", "subscribeSuccess Incident",
            ])
    }

    @Test("failed subscriptions are reported") func failures() async throws {
        let store = try file.open()
        let synchroniser = synchroniser(store)
        for (call, told) in [("suspend", "suspend"), ("unsubscribe", "unsubscribe"), ("resume", "subscribe")] {
            feed.fail("\(call) Note")
            await #expect(throws: EntityError.self) {
                switch call {
                case "suspend": try await synchroniser.suspendSubscription("Note")
                case "unsubscribe": try await synchroniser.unsubscribe("Note")
                default: try await synchroniser.subscribe("Note")
                }
            }
            #expect(file.handler.drain() == ["\(told)Failure Note"])
        }
        let local = await #expect(throws: EntityError.self) { try await synchroniser.subscribe("Draft") }
        let unknown = await #expect(throws: EntityError.self) { try await synchroniser.resumeSubscription("X") }
        #expect(local?.code == .noSuchClass && unknown?.code == .noSuchClass)
    }

    @Test("a reset keeps edits, and repeats its request after a crash") func reset() async throws {
        do {
            let store = try file.open()
            try store.importOplogs([Sample.oplog("1", ["title": "a"], counter: 5)], of: "Incident")
            try store.createIncident("2")
            feed.fail("recover Incident")
            await #expect(throws: EntityError.self) { try await synchroniser(store).reset("Incident") }
            #expect(try store.findAll("Incident").map(\.key) == ["2"])
        }
        feed.fail(nil)
        _ = feed.drainCalls()
        let store = try file.open()
        let marker = try batch("9")
        try await running(synchroniser(store)) {
            var confirmed = feed.confirmed.stream.makeAsyncIterator()
            feed.yield(marker, of: "Incident")
            _ = await confirmed.next()
        }
        #expect(feed.drainCalls() == ["recover Incident"])
        #expect(try !store.needsRecovery("Incident"))
        try await synchroniser(store).recover("Incident")
        try await synchroniser(store).reset("Incident")
        #expect(feed.drainCalls() == ["recover Incident", "recover Incident"])
        #expect(file.handler.drain().last == "resetSuccess Incident")
    }

    @Test("the handler decides the steps of a synchronisation") func steps() throws {
        let store = try file.open()
        let synchroniser = synchroniser(store)
        synchroniser.beginSynchronize(["service"], context: "mine")
        synchroniser.stopBackgroundSynchronization()
        synchroniser.startBackgroundSynchronization()
        #expect(feed.drainCalls() == ["connect", "disconnect", "connect"])
        let all: [SyncStep] = [.starting, .uploading, .downloading, .finishing, .error(reason: "gone")]
        #expect(all.map { store.onSynchronize($0) } == Array(repeating: .proceed, count: 5))
        let names = ["STARTING", "UPLOADING", "DOWNLOADING", "FINISHING"].map {
            "synchronize \($0) [\"service\"] mine "
        }
        #expect(file.handler.drain() == names + ["synchronize ERROR [\"service\"] mine gone"])
        let refusing = StoreFile(handler: RecordingHandler(answer: .cancel))
        #expect(try refusing.open().onSynchronize(.starting) == .cancel)
    }

    @Test("a client's events have Sybase's numbers") func statuses() {
        let events: [(SyncEvent, Int?)] = [
            (.status(.connected), 1), (.status(.notAvailable), 2), (.status(.connectFailed), 2),
            (.status(.connecting), 5), (.storeFull, 7), (.connectionLost(reason: "r"), 2),
            (.closed(code: 1, reason: "r"), 2), (.caughtUp(userID: nil), nil), (.bound(userID: "u"), nil),
        ]
        for (event, number) in events { #expect(EntityConnectionStatus.reported(by: event)?.0.rawValue == number) }
        #expect(EntityConnectionStatus.allCases.map(\.rawValue) == Array(1...7))
    }

    /// A client that never connects. Its store has one oplog of incident 1, its recall, and one oplog of incident 2.
    private func client(_ path: String) throws -> SyncClient {
        let configuration = SyncClientConfiguration(
            host: "127.0.0.1", port: 1, instanceID: "app", deviceID: "d", storePath: path)
        _ = try SyncClient(configuration: configuration, logger: logger)
        let database = try DatabaseQueue(path: path)
        try database.write { db in
            try db.execute(
                sql: "INSERT INTO channel (kind, user_id, biz_type, sync_point) VALUES (1, '', 'Incident', 3)")
            for (id, payload, recalls) in [
                (1, try Sample.oplog("1", ["title": "a"]), 0), (2, [], 1),
                (3, try Sample.oplog("2", ["title": "b"]), 0),
            ] {
                try db.execute(
                    sql: """
                        INSERT INTO oplog (channel_id, oplog_id, payload, is_binary, third_message_id, created_at_ms,
                            valid_until_ms, recalls, is_replay, was_shown)
                        VALUES (1, ?, ?, 0, '', 0, 0, ?, 0, 0)
                        """, arguments: [id, Data(payload), recalls])
            }
        }
        try database.close()
        return try SyncClient(configuration: configuration, logger: logger)
    }

    @Test("a SyncClient is a feed: its oplogs are stored and confirmed, and come once") func realClient() async throws {
        let path = file.path + ".sync"
        defer { for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) } }
        let store = try file.open()
        let (told, tell) = AsyncStream<String>.makeStream()
        file.handler.onCallback { tell.yield($0) }
        let client = try client(path)
        let synchroniser = EntitySynchroniser(store: store, feed: client, logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await synchroniser.run() }
            for await line in told where line == "import 2" { break }
            try await synchroniser.suspendSubscription("Incident")
            group.cancelAll()
            try await group.waitForAll()
        }
        #expect(try store.findAll("Incident").map(\.key) == ["1", "2"])
        let states = try await DatabaseQueue(path: path).read { db in
            try Int.fetchAll(db, sql: "SELECT count(*) FROM oplog WHERE state <> 0 AND hand_outs > 0")
        }
        #expect(states == [3])
    }
}
