import Foundation
import GRDB
import Logging
import Testing

@testable import OfflineResources

@Suite("The store on the disk", .timeLimit(.minutes(2))) struct StoreTests {
    private let cached = SyncPolicy(fetchPolicy: .fetchFromCache)

    /// No real cipher: it shows what is encrypted, and with which key and place.
    private struct Mask: ResourceCipher {
        let key: UInt8

        func seal(_ body: [UInt8], for place: String) throws -> [UInt8] {
            [UInt8]("\(key):\(place):".utf8) + body.map { $0 ^ key }
        }

        func open(_ sealed: [UInt8], for place: String) throws -> [UInt8] {
            let mark = [UInt8]("\(key):\(place):".utf8)
            guard sealed.starts(with: mark) else { throw Unexpected("another key or place") }
            return sealed.dropFirst(mark.count).map { $0 ^ key }
        }
    }

    private func file(_ bench: Bench) throws -> String {
        var all = Data()
        for suffix in ["", "-wal"] {
            all += (try? Data(contentsOf: bench.folder.appending(path: "resources.sqlite" + suffix))) ?? Data()
        }
        return String(decoding: all, as: UTF8.self)
    }

    @Test("with a cipher no body is readable in the file, also of older copies; another key is refused")
    func sealing() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "\"secret-of-service\"")
            do {
                let plain = try bench.start()
                _ = try await plain.fetchObject("/a")
                plain.networkChanged(isAvailable: false)
                _ = try await plain.update("/b", body: bytes("\"secret-of-edit\""))
            }
            #expect(try file(bench).contains("secret-of-service"))
            do {
                let client = try bench.start { $0.cipher = Mask(key: 90) }
                client.networkChanged(isAvailable: false)
                #expect(try await client.fetchObject("/a")?.body == bytes("\"secret-of-service\""))
                #expect(try await client.fetchObject("/b")?.body == bytes("\"secret-of-edit\""))
                _ = try await client.create(in: "/c", body: bytes("\"secret-of-create\""))
                client.networkChanged(isAvailable: true)
                // Moved to its place at the service, the body is encrypted for that place.
                _ = try await client.synchronise()
                #expect(try await client.fetchObject("/c/101", policy: cached)?.body == bytes("\"secret-of-create\""))
            }
            #expect(try !file(bench).contains("secret-of"))
            for cipher in [nil, Mask(key: 91)] {
                #expect { try bench.start { $0.cipher = cipher } } throws: { ($0 as? ResourceError)?.code == .storeKey }
            }
            #expect(try await bench.start { $0.cipher = Mask(key: 90) }.fetchObject("/a", policy: cached) != nil)
        }
    }

    @Test("a damaged file is moved aside, and a new store begins") func damage() async throws {
        try await Bench.with { bench in
            let path = bench.folder.appending(path: "resources.sqlite")
            try Data(repeating: 7, count: 10_000).write(to: path)
            let client = try bench.start()
            #expect(client.replacedDamagedStore)
            #expect(FileManager.default.fileExists(atPath: path.path + ".damaged"))
            bench.backend.set("/a", "1")
            #expect(try await client.fetchObject("/a") != nil)
            #expect(try !bench.start().replacedDamagedStore)
        }
    }

    @Test("a file of a newer library is refused and not changed") func newer() async throws {
        try await Bench.with { bench in
            _ = try bench.start()
            // The client writes at its start.
            var configuration = Configuration()
            configuration.busyMode = .timeout(5)
            let database = try DatabaseQueue(
                path: bench.folder.appending(path: "resources.sqlite").path, configuration: configuration)
            try await database.write { db in
                try db.execute(sql: "INSERT INTO grdb_migrations VALUES ('9 something else')")
            }
            #expect { try bench.start() } throws: { ($0 as? ResourceError)?.message.contains("newer version") == true }
        }
    }

    @Test("a missing folder and invalid settings are refused") func badSettings() throws {
        func open(_ configure: (inout ResourceConfiguration) -> Void) throws {
            var configuration = ResourceConfiguration(storePath: "/no/such/folder/r.sqlite")
            configure(&configuration)
            _ = try ResourceClient(
                configuration: configuration, transport: TestTransport(url: "http://127.0.0.1:1"),
                logger: Logger(label: "test"))
        }
        #expect { try open { _ in } } throws: { ($0 as? ResourceError)?.code == .store }
        for configure in [
            { (settings: inout ResourceConfiguration) in settings.maxStoreSize = 0 },
            { $0.periodicRefreshInterval = .zero }, { $0.batchPath = "http://x/" },
            { $0.policies.backendDefault = SyncPolicy(expirationPolicy: .expireAfter) },
        ] { #expect { try open(configure) } throws: { ($0 as? ResourceError)?.code == .invalidArgument } }
    }

    @Test("the counted size equals that of the rows, after any operation") func accounting() async throws {
        try await Bench.with { bench in
            for number in 1...5 { bench.backend.set("/a/\(number)", "{\"n\":\(number)}") }
            let client = try bench.start()
            _ = try await client.fetchCollection("/a")
            client.networkChanged(isAvailable: false)
            _ = try await client.update("/a/1", body: bytes("{\"n\":1234567}"))
            try await client.delete("/a/2")
            _ = try await client.create(in: "/a", body: bytes("{}"))
            try await client.evict("/a/3")
            client.networkChanged(isAvailable: true)
            _ = try await client.synchronise()
            let (used, counted) = try await client.store.write("test") { transaction in
                let sum = "sum(300 + 2 * length(uri) + coalesce(length(body), 0))"
                return (
                    try Int.fetchOne(transaction.context.db, sql: "SELECT used_bytes FROM store"),
                    try Int.fetchOne(transaction.context.db, sql: "SELECT \(sum) FROM resource")
                )
            }
            #expect(used != nil && used == counted)
        }
    }

    @Test("an app that ends between an answer and its callback gets the callback at the next run")
    func lostCallback() async throws {
        try await Bench.with { bench in
            do {
                let client = try bench.start { $0.callbacks = nil }
                client.networkChanged(isAvailable: false)
                _ = try await client.update("/a", body: bytes("1"))
                client.networkChanged(isAvailable: true)
                let edit = try await client.store.write("test") {
                    try $0.edits.sendable(limit: 1, owner: "u1").first
                }
                // The answer is stored, and the app ends.
                let answer = EditAnswer(etag: "\"1\"", body: nil, asOf: bench.time)
                try await client.store.write("test") { [now = bench.time] transaction in
                    guard let edit else { throw Unexpected("there is no edit") }
                    _ = try transaction.responses.apply(edit, answer: answer, place: nil, owner: "u1", now: now)
                }
            }
            let client = try bench.start()
            _ = try await client.synchronise()
            #expect(bench.told.drain() == [.synchronized("/a", "1")])
            _ = try await client.synchronise()
            #expect(bench.told.drain().isEmpty)
        }
    }

    @Test("an app that ends between sending and the answer sends again, with the same key")
    func lostProcess() async throws {
        try await Bench.with { bench in
            let first = try bench.start()
            first.networkChanged(isAvailable: false)
            _ = try await first.create(in: "/a", body: bytes("{}"))
            try await first.store.write("test") { transaction in
                try transaction.edits.markSent(transaction.edits.sendable(limit: 9, owner: "u1"))
            }
            let client = try bench.start()
            let key = try await client.loadOfflineResources().first?.edits.first?.id
            _ = try await client.synchronise()
            #expect(bench.backend.drainRequests().map(\.key) == [key])
        }
    }

    @Test("a transaction that fails changes nothing") func rollback() async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            await #expect {
                try await client.store.write("test") { transaction in
                    _ = try transaction.resources.insert(ResourceURI("/a"), kind: .item, owner: "u1")
                    throw ResourceError(.invalidArgument, "stop")
                }
            } throws: { ($0 as? ResourceError)?.code == .invalidArgument }
            #expect(
                try await client.store.write("test") { try $0.resources.row(ResourceURI("/a"), owner: "u1") }
                    == nil)
        }
    }
}
