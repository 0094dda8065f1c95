import Testing

@testable import ClientServices

@Suite("LRU memory cache: the rules") struct LRUEntriesTests {
    private let start = ContinuousClock.now

    /// A cache by its definition: a list in the order of use.
    private struct Naive {
        struct Entry {
            let key: String
            let value: Int
            let cost: Int
            let expiresAt: ContinuousClock.Instant?
        }

        let countLimit: Int
        let costLimit: Int
        var entries: [Entry] = []

        mutating func set(_ entry: Entry) -> Bool {
            entries.removeAll { $0.key == entry.key }
            guard entry.cost <= costLimit else { return false }
            entries.append(entry)
            while entries.count > countLimit || entries.map(\.cost).reduce(0, +) > costLimit { entries.removeFirst() }
            return true
        }

        func peek(_ key: String, _ now: ContinuousClock.Instant) -> Int? {
            entries.first { $0.key == key && $0.expiresAt.map { $0 > now } ?? true }?.value
        }

        mutating func value(_ key: String, _ now: ContinuousClock.Instant) -> Int? {
            guard let index = entries.firstIndex(where: { $0.key == key }) else { return nil }
            let entry = entries.remove(at: index)
            guard entry.expiresAt.map({ $0 > now }) ?? true else { return nil }
            entries.append(entry)
            return entry.value
        }
    }

    @Test("random calls agree with a naive list, entry by entry and in order", arguments: UInt64(1)...60)
    func random(seed: UInt64) {
        var numbers = SeededNumbers(seed: seed)
        let (countLimit, costLimit) = (1 + numbers.below(6), numbers.below(20))
        var lru = LRUEntries<Int>(countLimit: countLimit, costLimit: costLimit)
        var naive = Naive(countLimit: countLimit, costLimit: costLimit)
        var now = start
        for step in 0..<400 {
            now += .seconds(numbers.below(3))
            let key = "k\(numbers.below(9))"
            switch numbers.below(8) {
            case 0, 1, 2:
                let expiresAt = numbers.below(2) == 0 ? nil : now + .seconds(numbers.below(8))
                let cost = numbers.below(7)
                let isKept = lru.set(step, for: key, cost: cost, expiresAt: expiresAt)
                let expected = naive.set(Naive.Entry(key: key, value: step, cost: cost, expiresAt: expiresAt))
                #expect(isKept == expected, "step \(step)")
            case 3, 4:
                let (value, expected) = (lru.value(for: key, at: now), naive.value(key, now))
                #expect(value == expected, "step \(step)")
            case 5: #expect(lru.peek(key, at: now) == naive.peek(key, now), "step \(step)")
            case 6:
                lru.remove(key)
                naive.entries.removeAll { $0.key == key }
            default:
                if numbers.below(2) == 0 {
                    lru.removeExpired(at: now)
                    naive.entries.removeAll { $0.expiresAt.map { $0 <= now } ?? false }
                } else {
                    let doomed = "k\(numbers.below(9))"
                    lru.remove { $0 > doomed }
                    naive.entries.removeAll { $0.key > doomed }
                }
            }
            #expect(lru.keysFromOldest == naive.entries.map(\.key), "step \(step)")
            #expect(lru.cost == naive.entries.map(\.cost).reduce(0, +) && lru.count == naive.entries.count)
        }
    }

    @Test("a use makes an entry the last to be evicted; a peek does not") func order() {
        var lru = LRUEntries<Int>(countLimit: 2, costLimit: .max)
        for key in ["a", "b"] { _ = lru.set(1, for: key, cost: 1, expiresAt: nil) }
        #expect(lru.peek("a", at: start) == 1)
        _ = lru.set(1, for: "c", cost: 1, expiresAt: nil)
        #expect(lru.keysFromOldest == ["b", "c"])
        let used = lru.value(for: "b", at: start)
        #expect(used == 1)
        _ = lru.set(1, for: "d", cost: 1, expiresAt: nil)
        #expect(lru.keysFromOldest == ["b", "d"])
    }

    @Test("meaningless limits are replaced by the nearest valid ones; huge costs do not overflow") func limits() {
        var lru = LRUEntries<Int>(countLimit: 0, costLimit: -1)
        #expect(lru.countLimit == 1 && lru.costLimit == 0)
        let isKept = lru.set(1, for: "a", cost: -5, expiresAt: nil)
        #expect(isKept && lru.cost == 0)
        lru = LRUEntries(countLimit: 9, costLimit: .max)
        for key in ["a", "b"] { _ = lru.set(1, for: key, cost: .max, expiresAt: nil) }
        #expect(lru.keysFromOldest == ["b"] && lru.cost == .max)
    }
}
