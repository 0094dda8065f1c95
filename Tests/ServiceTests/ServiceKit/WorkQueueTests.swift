import ServiceKit
import TestSupport
import Testing

@Suite("Work queue") struct WorkQueueTests {
    @Test("returns the waiting elements in order, up to the limit") func groups() async {
        let queue = WorkQueue<Int>()
        queue.add(contentsOf: 1...5)
        #expect(queue.count == 5)
        #expect(await queue.dequeue(upTo: 3) == [1, 2, 3])
        #expect(await queue.dequeue(upTo: 3) == [4, 5])
    }

    @Test("finished: waiting elements are still returned, and later elements are refused")
    func finishes() async {
        let queue = WorkQueue<Int>()
        queue.add(1)
        queue.finish()
        queue.add(2)
        #expect(await queue.dequeue(upTo: 9) == [1])
        #expect(await queue.dequeue(upTo: 9) == [])
    }

    @Test("a standby consumer receives only elements that nobody took for its delay") func standby() async {
        let queue = WorkQueue<Int>()
        let standbyDelay = Duration.milliseconds(50)
        let added = ContinuousClock.now
        queue.add(contentsOf: 1...3)
        #expect(await queue.dequeue(upTo: 1, standbyDelay: standbyDelay) == [1])
        #expect(added.duration(to: .now) >= standbyDelay)
        // Another consumer takes one, so the next waits for the whole delay again.
        let taken = ContinuousClock.now
        #expect(await queue.dequeue(upTo: 1) == [2])
        #expect(await queue.dequeue(upTo: 1, standbyDelay: standbyDelay) == [3])
        #expect(taken.duration(to: .now) >= standbyDelay)
    }

    @Test("a sleeping standby consumer wakes for elements that nobody takes, and at the end") func standbySleeps() async
    {
        let queue = WorkQueue<Int>()
        async let taken = queue.dequeue(upTo: 1, standbyDelay: .milliseconds(1))
        queue.add(1)
        #expect(await taken == [1])
        async let last = queue.dequeue(upTo: 1, standbyDelay: .seconds(60))
        queue.finish()
        #expect(await last == [])
    }

    @Test("many consumers share all elements once, and finish wakes them all") func takers() async {
        let queue = WorkQueue<Int>()
        let taken = await withTaskGroup(of: [Int].self) { group in
            for _ in 0..<8 {
                group.addTask {
                    var mine: [Int] = []
                    while true {
                        let some = await queue.dequeue(upTo: 3)
                        if some.isEmpty { return mine }
                        mine += some
                        await Task.yield()
                    }
                }
            }
            for number in 0..<2_000 {
                queue.add(number)
                if number.isMultiple(of: 50) { await Task.yield() }
            }
            queue.finish()
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(taken.sorted() == Array(0..<2_000))
    }
}
