import Concurrency
import Testing

@Suite("A locked value") struct LockedValueTests {
    private struct Odd: Error, Hashable {
        let number: Int
    }

    @Test("threads that change it at once lose no change") func exclusive() async {
        let value = LockedValue(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { for _ in 0..<10_000 { value.withLock { $0 += 1 } } }
            }
        }
        #expect(value.withLock { $0 } == 80_000)
    }

    @Test("a body that throws keeps its changes, passes on its typed error, and releases the lock") func throwing() {
        let value = LockedValue(1)
        #expect(throws: Odd(number: 2)) {
            try value.withLock { value throws(Odd) in
                value += 1
                throw Odd(number: value)
            }
        }
        #expect(value.withLock { $0 } == 2)
    }
}
