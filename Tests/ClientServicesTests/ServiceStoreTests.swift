import Foundation
import GRDB
import Testing

@testable import ClientServices

@Suite("Client services: the store") struct ServiceStoreTests {
    private let folder: TemporaryFolder
    private let key = [UInt8](repeating: 7, count: 32)

    init() throws { folder = try TemporaryFolder() }

    private func values(key: [UInt8]? = nil) throws -> KeyValueStore {
        try UserStores(store: ServiceStore(folder: folder.url, key: key)).common
    }

    @Test("with a key no value is readable in the files, and all of them can be read") func sealed() throws {
        try values(key: key).set("a secret text", for: "k")
        #expect(try !folder.bytes(prefix: "services").contains(text: "a secret text"))
        #expect(try values(key: key).value("k", as: String.self) == "a secret text")
    }

    @Test("a readable store is encrypted when a key is given, and no plain text is left")
    func sealedLater() throws {
        try values().set("a secret text", for: "k")
        #expect(try folder.bytes(prefix: "services").contains(text: "a secret text"), "else this test shows nothing")
        #expect(try values(key: key).value("k", as: String.self) == "a secret text")
        #expect(try !folder.bytes(prefix: "services").contains(text: "a secret text"))
    }

    @Test("a store opens with its own key only, and loses nothing by an attempt with another") func wrongKey() throws {
        try values(key: key).set(1, for: "k")
        for other in [nil, [UInt8](repeating: 8, count: 32)] {
            #expect(throws: ClientServiceError.self) { try values(key: other) }
            do { _ = try values(key: other) } catch { #expect((error as? ClientServiceError)?.code == .storeKey) }
        }
        #expect(try values(key: key).value("k", as: Int.self) == 1)
    }

    @Test("a key has 32 bytes") func keyLength() throws {
        for count in [0, 16, 31, 33] {
            do {
                _ = try ServiceStore(folder: folder.url, key: [UInt8](repeating: 0, count: count))
                Issue.record("\(count) bytes were accepted")
            } catch { #expect(error.code == .invalidArgument) }
        }
    }

    @Test("the key is changed in one transaction, and can be removed") func changedKey() throws {
        let store = try ServiceStore(folder: folder.url, key: key)
        let values = try UserStores(store: store).common
        for number in 0..<20 { try values.set(number, for: "k\(number)") }
        let other = [UInt8](repeating: 9, count: 32)
        try store.changeKey(to: other)
        #expect(try values.value("k7", as: Int.self) == 7)
        try store.changeKey(to: nil)
        #expect(try values.value("k8", as: Int.self) == 8)
        try store.changeKey(to: other)
        #expect(try self.values(key: other).value("k9", as: Int.self) == 9)
    }

    @Test("a value that was written for one place is refused at another") func places() throws {
        let store = try ServiceStore(folder: folder.url, key: key)
        let moved: ServiceItems? = try store.write("moving") { items in
            try items.put(Data("1".utf8), .values, owner: "u1", key: "k")
            try items.db.execute(sql: "UPDATE item SET owner = 'u2'")
            return nil
        }
        #expect(moved == nil)
        let values = KeyValueStore(store: store, owner: "u2")
        #expect(throws: ClientServiceError.self) { try values.value("k", as: Int.self) }
    }

    @Test("a damaged file is moved aside, and a new store begins") func damaged() throws {
        try values().set(1, for: "k")
        for suffix in ["", "-wal"] {
            try Data(repeating: 0x5a, count: 9_000).write(
                to: folder.url.appendingPathComponent("services.sqlite" + suffix))
        }
        let store = try ServiceStore(folder: folder.url)
        #expect(store.replacedDamagedStore)
        #expect(try KeyValueStore(store: store, owner: "").value("k", as: Int.self) == nil)
        #expect(FileManager.default.fileExists(atPath: folder.url.path + "/services.sqlite.damaged"))
        #expect(try !ServiceStore(folder: folder.url).replacedDamagedStore, "only the first time")
    }

    @Test("a store of a newer library is refused and not changed") func newer() throws {
        let store = try ServiceStore(folder: folder.url)
        _ = try store.write("faking the future") { items in
            try items.db.execute(sql: "INSERT INTO grdb_migrations VALUES ('99')")
            return 0
        }
        do {
            _ = try ServiceStore(folder: folder.url)
            Issue.record("it was opened")
        } catch { #expect(error.code == .store && error.message.contains("newer")) }
    }

    @Test("a transaction that fails changes nothing, in memory neither") func failing() throws {
        let store = try ServiceStore(folder: folder.url)
        var isCommitted = false
        do {
            _ = try store.write(
                "failing",
                { items -> Int in
                    try items.put(Data("1".utf8), .values, key: "k")
                    throw PushFault("on purpose")
                }, committed: { _ in isCommitted = true })
            Issue.record("it did not fail")
        } catch { #expect(error.code == .store) }
        #expect(!isCommitted)
        #expect(try store.read("reading") { try $0.body(.values, key: "k") } == nil)
    }
}
