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
