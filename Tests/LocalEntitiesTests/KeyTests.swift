import Foundation
import Logging
import MobileSync
import Synchronization
import Testing

@testable import LocalEntities

@Suite("Entities: keys") struct KeyTests {
    private let file = StoreFile()

    /// Grants the ranges that a test sets.
    private final class Grants: KeyRangeSource {
        private let ranges: Mutex<[KeyRange]>
        let reports = Mutex<[[KeyUse]]>([])
        init(_ ranges: [KeyRange]) { self.ranges = Mutex(ranges) }

        func requestRange(reporting use: [KeyUse]) async throws -> KeyRange {
            reports.withLock { $0.append(use) }
            let range: KeyRange? = ranges.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            guard let range else { throw FakeSubmitter.Outage() }
            return range
        }
    }

    @Test("local ids never repeat: not for concurrent tasks, and not after restarts") func localIDs() async throws {
        var all: [Int64] = []
        for _ in 0..<3 {
            let store = try file.open()
            all += try await withThrowingTaskGroup(of: [Int64].self) { group in
                for _ in 0..<8 { group.addTask { try (0..<50).map { _ in try store.localKeys.generateId() } } }
                return try await group.reduce(into: []) { $0 += $1 }
            }
        }
        #expect(Set(all).count == 1_200 && all.allSatisfy { $0 > 0 })
        let bound = 1_200 + EntityLimits.localIDsAtOnce * 3 * 8
        #expect(all.allSatisfy { $0 <= bound }, "a restart, or a race, loses some and not many")
    }

    @Test("GUIDs have the standard form and differ") func guids() throws {
        let keys = try file.open().localKeys
        let all = Set((0..<1_000).map { _ in keys.generateGuid() })
        #expect(all.count == 1_000)
        #expect(all.allSatisfy { $0.wholeMatch(of: /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/) != nil })
    }

    @Test("keys are drawn from granted ranges, each once over restarts, and used keys are reported")
    func granted() async throws {
        let grants = Grants([KeyRange(first: 100, last: 102), KeyRange(first: 0, last: 1)])
        do {
            let keys = KeyGenerator(store: try file.open(), source: grants)
            #expect(throws: EntityError.self) { try keys.generateId() }
            try await keys.refill(whenBelow: 1)
            #expect(try keys.generateId() == 100)
            try await keys.refill(whenBelow: 2)
            #expect(grants.reports.withLock { $0.count } == 1, "two are left")
        }
        let keys = KeyGenerator(store: try file.open(), source: grants)
        #expect(try keys.generateId() == 101)
        try await keys.refill(whenBelow: 5)
        #expect(try keys.remaining() == 3)
        #expect(try (0..<3).map { _ in try keys.generateId() } == [0, 1, 102])
        let error = #expect(throws: EntityError.self) { try keys.generateId() }
        #expect(error?.code == .keysExhausted)
        await #expect(throws: FakeSubmitter.Outage.self) { try await keys.refill(whenBelow: 1) }
        let first = KeyRange(first: 100, last: 102)
        let reports = grants.reports.withLock { $0 }
        #expect(reports[0].isEmpty && reports[1] == [KeyUse(range: first, used: 2)])
        #expect(reports[2] == [KeyUse(range: KeyRange(first: 0, last: 1), used: 2), KeyUse(range: first, used: 3)])
    }

    @Test("a request for keys is an operation with the used keys; a request that no task waits for is cancelled")
    func operations() async throws {
        let path = file.path + ".sync"
        defer { for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) } }
        let client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: 1, instanceID: "app", deviceID: "d", storePath: path),
            logger: Logger(label: "keys") { _ in SwiftLogNoOpLogHandler() })
        try client.bind(userID: "u1", sessionID: "s")
        let source = KeyRangeOperations(client: client, keys: "Incident", userID: "u1")
        try await withThrowingTaskGroup(of: KeyRange.self) { group in
            group.addTask {
                try await source.requestRange(reporting: [KeyUse(range: KeyRange(first: 3, last: 9), used: 7)])
            }
            while try client.pendingOperations().isEmpty { await Task.yield() }
            let operation = try client.pendingOperations()[0]
            #expect(operation.component == "KEY_RANGE" && operation.key == "Incident" && operation.name == "grant")
            #expect(String(decoding: operation.body, as: UTF8.self).contains(#""used":7"#))
            group.cancelAll()
            let outcome = await group.nextResult()
            #expect(throws: CancellationError.self) { try outcome?.get() }
        }
        #expect(try client.pendingOperations().isEmpty)
    }

    @Test("used keys are reported until the server has received the report, and not again")
    func reported() async throws {
        let grants = Grants((0..<3).map { KeyRange(first: $0, last: $0) })
        let keys = KeyGenerator(store: try file.open(), source: grants)
        for _ in 0..<3 {
            try await keys.refill(whenBelow: 1)
            _ = try keys.generateId()
        }
        #expect(grants.reports.withLock { $0.map { $0.map(\.range.first) } } == [[], [0], [1]])
    }

    @Test(
        "an invalid range, or one that was granted before, is refused",
        arguments: [
            KeyRange(first: -1, last: 5), KeyRange(first: 5, last: 4), KeyRange(first: 0, last: 1_000_000),
            KeyRange(first: .max, last: .max), KeyRange(first: 19, last: 25), KeyRange(first: 5, last: 10),
        ])
    func refused(range: KeyRange) async throws {
        let keys = KeyGenerator(
            store: try file.open(), source: Grants([KeyRange(first: 10, last: 19), range]))
        try await keys.refill(whenBelow: 1)
        let error = await #expect(throws: EntityError.self) { try await keys.refill(whenBelow: 100) }
        #expect(error?.code == .invalidArgument)
        #expect(try keys.remaining() == 10)
    }

    @Test("concurrent tasks get each key once, and one of them requests more") func concurrent() async throws {
        let grants = Grants([KeyRange(first: 0, last: 199)])
        let keys = KeyGenerator(store: try file.open(), source: grants)
        let all = try await withThrowingTaskGroup(of: [Int64].self) { group in
            for _ in 0..<10 {
                group.addTask {
                    try await keys.refill(whenBelow: 1)
                    return try (0..<20).map { _ in try keys.generateId() }
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(all.sorted() == Array(0..<200))
    }
}
