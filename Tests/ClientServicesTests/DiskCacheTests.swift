import Foundation
import Testing

@testable import ClientServices

@Suite("Disk cache") struct DiskCacheTests {
    private let folder: TemporaryFolder
    private let clock = SetClock()
    private let key = [UInt8](repeating: 7, count: 32)

    init() throws { folder = try TemporaryFolder() }

    private func stores(key: [UInt8]? = nil) throws -> UserStores {
        try UserStores(store: ServiceStore(folder: folder.url, key: key), now: { [clock] in clock.date })
    }

    private func data(_ text: String) -> Data { Data(text.utf8) }

    @Test("values survive restarts until their expiry; without one they never expire") func expiry() throws {
        var cache = try stores().diskCache(name: "pictures", capacity: 100_000)
        try cache.set(data("short"), for: "s", expiresAt: clock.date + 10)
        try cache.set(data("past"), for: "p", expiresAt: Date(timeIntervalSince1970: -5))
        try cache.set(data("for ever"), for: "f")
        for end in [Double.infinity, 1e300, .greatestFiniteMagnitude] {
            try cache.set(data("very long"), for: "v", expiresAt: Date(timeIntervalSince1970: end))
            #expect(try cache.exists("v"))
        }
        try cache.set(data("no time"), for: "v", expiresAt: Date(timeIntervalSince1970: -.infinity))
        #expect(try !cache.exists("v"))
        try cache.set(Data(), for: "empty")
        #expect(try cache.value(for: "p") == nil, "a time before 1970 is not never")
        cache = try stores().diskCache(name: "pictures", capacity: 100_000)
        clock.advance(9.999)
        #expect(try cache.value(for: "s") == data("short") && cache.exists("s"))
        clock.advance(0.001)
        #expect(try cache.value(for: "s") == nil && !cache.exists("s") && cache.peek("s") == nil)
        clock.advance(1e9)
        #expect(try cache.value(for: "f") == data("for ever") && cache.value(for: "empty") == Data())
    }

    @Test("the least recently used value is evicted first, over restarts too; a peek is no use") func order() throws {
        let entry = 300 + DiskCache.overheadBytes + 1
        var cache = try stores().diskCache(name: "c", capacity: 3 * entry)
        for key in ["a", "b", "c"] { try cache.set(Data(count: 300), for: key) }
        _ = try cache.value(for: "a")
        _ = try cache.peek("b")
        cache = try stores().diskCache(name: "c", capacity: 3 * entry)
        try cache.set(Data(count: 300), for: "d")
        #expect(try ["a", "b", "c", "d"].filter { try cache.exists($0) } == ["a", "c", "d"])
        try cache.set(Data(count: 2 * entry - DiskCache.overheadBytes - 1), for: "e")
        #expect(try ["a", "c", "d", "e"].filter { try cache.exists($0) } == ["d", "e"])
        #expect(try cache.bytes() == 3 * entry)
    }

    @Test("values are removed by prefix, suffix and pattern, of the current owner alone") func removal() throws {
        let (keys, stores) = (["user/1", "user/10", "pic/1.png", "pic/2.jpg"], try stores(key: key))
        try stores.signIn(userID: "u1")
        let cache = try stores.diskCache(name: "c", capacity: 100_000, isPerUser: true)
        func fill() throws { for key in keys { try cache.set(data("x"), for: key) } }
        func left() throws -> [String] { try keys.filter { try cache.exists($0) } }
        try fill()
        try stores.signIn(userID: "u2")
        try fill()
        try cache.remove(prefix: "user/1")
        #expect(try left() == ["pic/1.png", "pic/2.jpg"])
        try cache.remove(suffix: ".png")
        #expect(try left() == ["pic/2.jpg"])
        try fill()
        try cache.remove(pattern: #"^user/\d$|2"#)
        #expect(try left() == ["user/10", "pic/1.png"])
        do {
            try cache.remove(pattern: "(")
            Issue.record("it was accepted")
        } catch { #expect(error.code == .invalidArgument) }
        try cache.remove(suffix: "")
        #expect(try left().isEmpty)
        try stores.signIn(userID: "u1")
        #expect(try left() == keys)
    }

    @Test("expired values are evicted before valid ones") func expiredFirst() throws {
        let entry = 300 + DiskCache.overheadBytes + 1
        let cache = try stores().diskCache(name: "c", capacity: 3 * entry)
        try cache.set(Data(count: 300), for: "a")
        try cache.set(Data(count: 300), for: "b", expiresAt: clock.date + 1)
        try cache.set(Data(count: 300), for: "c")
        clock.advance(2)
        try cache.set(Data(count: 300), for: "d")
        #expect(try ["a", "c", "d"].allSatisfy { try cache.exists($0) })
    }

    @Test("a value larger than the capacity is not stored, and removes the former value of its key")
    func tooLarge() throws {
        let cache = try stores().diskCache(name: "c", capacity: 1_000)
        try cache.set(data("old"), for: "k")
        try cache.set(data("other"), for: "o")
        #expect(try !cache.set(Data(count: 1_000), for: "k"))
        #expect(try !cache.exists("k") && cache.exists("o"))
    }

    @Test("random calls agree with a naive list", arguments: UInt64(1)...12) func random(seed: UInt64) throws {
        var numbers = SeededNumbers(seed: seed)
        let capacity = 1_000 + numbers.below(2_000)
        let cache = try stores().diskCache(name: "c", capacity: capacity)
        var naive: [(key: String, value: Data, expiresAt: Date?)] = []
        for step in 0..<150 {
            clock.advance(Double(numbers.below(2)))
            let key = "k\(numbers.below(8))"
            let isThere: (Date?) -> Bool = { [clock] in $0.map { $0 > clock.date } ?? true }
            switch numbers.below(5) {
            case 0, 1:
                let value = Data(repeating: UInt8(step), count: numbers.below(500))
                let expiresAt = numbers.below(2) == 0 ? nil : clock.date + Double(numbers.below(9))
                try cache.set(value, for: key, expiresAt: expiresAt)
                naive.removeAll { $0.key == key }
                naive.append((key, value, expiresAt))
                let total = { naive.map { $0.value.count + 2 + DiskCache.overheadBytes }.reduce(0, +) }
                if total() > capacity { naive.removeAll { !isThere($0.expiresAt) } }
                while total() > capacity { naive.removeFirst() }
            case 2:
                let value = try cache.value(for: key)
                let index = naive.firstIndex { $0.key == key }
                #expect(value == index.flatMap { isThere(naive[$0].expiresAt) ? naive[$0].value : nil }, "step \(step)")
                if let entry = index.map({ naive.remove(at: $0) }), isThere(entry.expiresAt) { naive.append(entry) }
            case 3:
                let expected = naive.first { $0.key == key && isThere($0.expiresAt) }?.value
                #expect(try cache.peek(key) == expected, "step \(step)")
            default:
                try cache.remove([key])
                naive.removeAll { $0.key == key }
            }
        }
        for number in 0..<8 {
            let expected = naive.first { $0.key == "k\(number)" && $0.expiresAt.map { $0 > clock.date } ?? true }?.value
            #expect(try cache.peek("k\(number)") == expected)
        }
    }

    @Test("a cache per user changes with the user and shares its capacity; a common one does not change")
    func users() throws {
        let stores = try stores()
        let own = try stores.diskCache(name: "own", capacity: 2_000, isPerUser: true)
        let common = try stores.diskCache(name: "all", capacity: 2_000)
        do {
            _ = try own.value(for: "k")
            Issue.record("it belonged to no user")
        } catch { #expect(error.code == .noUser) }
        try stores.signIn(userID: "u1")
        try own.set(data("1"), for: "k")
        try common.set(data("c"), for: "k")
        try stores.signIn(userID: "u2")
        #expect(try own.value(for: "k") == nil && common.value(for: "k") == data("c"))
        try own.set(data("2"), for: "k")
        try own.remove(prefix: "")
        stores.signOut()
        try stores.signIn(userID: "u1")
        #expect(try own.value(for: "k") == data("1"), "u2 removed its own values")
        try stores.signIn(userID: "u2")
        for number in 0..<10 { try own.set(Data(count: 300), for: "n\(number)") }
        try stores.signIn(userID: "u1")
        #expect(try own.value(for: "k") == nil, "the least recently used, of any user")
    }

    @Test("an encrypted cache has no plain text in its files, and is empty for another key") func encrypted() throws {
        let cache = try stores(key: key).diskCache(name: "c", capacity: 10_000, isEncrypted: true)
        try cache.set(data("a secret text"), for: "k")
        #expect(try cache.value(for: "k") == data("a secret text"))
        #expect(try !folder.bytes(prefix: "cache-c").contains(text: "a secret text"))
        try ServiceStore(folder: folder.url, key: key).changeKey(to: [UInt8](repeating: 8, count: 32))
        let other = try stores(key: [UInt8](repeating: 8, count: 32)).diskCache(
            name: "c", capacity: 10_000, isEncrypted: true)
        #expect(try other.value(for: "k") == nil)
    }

    @Test("prefixes are removed byte by byte, without wildcards") func prefix() throws {
        let cache = try stores().diskCache(name: "c", capacity: 10_000)
        for key in ["a%b", "a_b", "axb", "ä1", "a"] { try cache.set(data(key), for: key) }
        try cache.remove(prefix: "a%")
        try cache.remove(prefix: "a_")
        try cache.remove(prefix: "ä")
        #expect(try ["a%b", "a_b", "axb", "ä1", "a"].filter { try cache.exists($0) } == ["axb", "a"])
    }

    @Test("a damaged cache is replaced by an empty one") func damaged() throws {
        _ = try stores().diskCache(name: "c", capacity: 10_000).set(data("x"), for: "k")
        for suffix in ["", "-wal"] {
            try Data(repeating: 1, count: 5_000).write(to: folder.url.appendingPathComponent("cache-c.sqlite" + suffix))
        }
        let cache = try stores().diskCache(name: "c", capacity: 10_000)
        #expect(try cache.value(for: "k") == nil && cache.set(data("y"), for: "k"))
    }

    @Test("invalid arguments are refused") func arguments() throws {
        let stores = try stores()
        for name in ["", "a/b", "..", "a b", String(repeating: "n", count: 65)] {
            #expect(throws: ClientServiceError.self, "\(name)") { try stores.diskCache(name: name, capacity: 10_000) }
        }
        #expect(throws: ClientServiceError.self) { try stores.diskCache(name: "c", capacity: 999) }
        #expect(throws: ClientServiceError.self) { try stores.diskCache(name: "c", capacity: 9_999, isEncrypted: true) }
        let cache = try stores.diskCache(name: "c", capacity: 10_000)
        for key in ["", "a\0b", String(repeating: "k", count: 257)] {
            #expect(throws: ClientServiceError.self) { try cache.set(data("x"), for: key) }
        }
    }

    @Test("concurrent tasks stay within the capacity") func concurrent() async throws {
        let cache = try stores().diskCache(name: "c", capacity: 5_000)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask {
                    for number in 0..<40 {
                        try cache.set(Data(count: 100), for: "\(task)-\(number)")
                        _ = try cache.value(for: "\((task + 1) % 4)-\(number)")
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try cache.bytes() <= 5_000 && cache.bytes() > 4_000)
    }
}
