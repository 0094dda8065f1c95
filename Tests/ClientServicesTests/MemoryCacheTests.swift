import Testing

@testable import ClientServices

@Suite("LRU memory cache") struct MemoryCacheTests {
    private let clock = SetClock()

    private func cache(count: Int = 100, cost: Int = .max) -> MemoryCache<Int> {
        MemoryCache(countLimit: count, costLimit: cost, now: { [clock] in clock.instant })
    }

    @Test("an expired entry is gone and needs no space") func lifetime() {
        let cache = cache()
        cache.set(1, for: "short", cost: 5, lifetime: .seconds(10))
        cache.set(2, for: "long")
        clock.advance(9.999)
        #expect(cache.value(for: "short") == 1 && cache.exists("short") && cache.cost == 6)
        clock.advance(0.001)
        #expect(cache.value(for: "short") == nil && cache.peek("short") == nil && !cache.exists("short"))
        #expect(cache.count == 1 && cache.cost == 1 && cache.value(for: "long") == 2)
        cache.set(3, for: "short")
        clock.advance(100_000)
        #expect(cache.value(for: "short") == 3, "set again without a lifetime")
    }

    @Test("entries are removed by keys, prefix, suffix and pattern") func removal() throws {
        let cache = cache()
        func fill() {
            for key in ["user/1", "user/2", "user/10", "pic/1.png", "pic/2.jpg", "x"] { cache.set(1, for: key) }
        }
        func left() -> [String] {
            ["user/1", "user/2", "user/10", "pic/1.png", "pic/2.jpg", "x"].filter { cache.exists($0) }
        }
        fill()
        cache.remove(["x", "user/2", "nothing"])
        #expect(left() == ["user/1", "user/10", "pic/1.png", "pic/2.jpg"])
        fill()
        cache.remove(prefix: "user/1")
        #expect(left() == ["user/2", "pic/1.png", "pic/2.jpg", "x"])
        fill()
        cache.remove(suffix: ".png")
        #expect(!cache.exists("pic/1.png") && cache.exists("pic/2.jpg"))
        fill()
        try cache.remove(pattern: #"^user/\d$"#)
        #expect(left() == ["user/10", "pic/1.png", "pic/2.jpg", "x"])
        try cache.remove(pattern: "pic")
        #expect(left() == ["user/10", "x"], "found anywhere in the key")
        cache.removeAll()
        #expect(cache.count == 0 && cache.cost == 0)
    }

    @Test("several entries are stored at once, and read from either end of the order of use") func ends() {
        let cache = cache(count: 4)
        cache.set(["a": 1, "b": 2, "c": 3])
        cache.set(4, for: "d")
        _ = cache.value(for: "a")
        #expect(cache.peek(2).map(\.key) == ["a", "d"] && cache.peek(2).map(\.value) == [1, 4])
        #expect(cache.peek(9, fromNewest: false).map(\.key) == ["b", "c", "d", "a"])
        #expect(cache.peek(0).isEmpty && cache.peek(-1).isEmpty)
        cache.setLimits(count: 2)
        #expect(cache.peek(9).map(\.key) == ["a", "d"], "the least recently used ones are removed")
        cache.setLimits(count: 9, cost: 1)
        #expect(cache.peek(9).map(\.key) == ["a"])
    }

    @Test("an invalid regular expression is refused, and nothing is removed") func badPattern() {
        let cache = cache()
        cache.set(1, for: "a")
        do {
            try cache.remove(pattern: "(")
            Issue.record("it was accepted")
        } catch { #expect(error.code == .invalidArgument) }
        #expect(cache.exists("a"))
    }

    @Test("count and cost stay within their limits; an entry above the limit alone is not stored") func bounds() {
        let cache = cache(count: 3, cost: 10)
        for number in 0..<10 { cache.set(number, for: "k\(number)", cost: 2) }
        #expect(cache.count == 3 && cache.value(for: "k9") == 9 && cache.value(for: "k6") == nil)
        cache.set(1, for: "big", cost: 9)
        #expect(cache.count == 1 && cache.cost == 9)
        #expect(!cache.set(2, for: "big", cost: 11) && cache.count == 0, "nor the one before")
    }

    @Test("concurrent tasks keep it within its limits") func concurrent() async {
        let cache = cache(count: 50)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for number in 0..<500 {
                        cache.set(number, for: "\(task)-\(number % 90)")
                        _ = cache.value(for: "\((task + 1) % 8)-\(number % 90)")
                        if number % 97 == 0 { cache.remove(prefix: "\(task)-1") }
                    }
                }
            }
        }
        #expect(cache.count <= 50 && cache.cost == cache.count)
    }
}
