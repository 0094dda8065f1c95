import DeliveryHistory
import SyncModel
import TestSupport
import Testing

@testable import MobileSync

@Suite("SyncClient: when oplogs come again, in counted time") struct ResendScheduleTests {
    private let start = ContinuousClock.now

    private func wait(_ id: Int64, row: Int64 = 1, repeats: Int = 0) -> ResendSchedule.Wait {
        ResendSchedule.Wait(
            channelRow: row, oplogID: id, state: ResendLadder.State(repeats: repeats, handOuts: repeats + 1))
    }

    @Test("a wait is over after its time and is given once; a later one waits for its own")
    func due() {
        var schedule = ResendSchedule()
        schedule.start(wait(1), isCounted: true, at: start)
        schedule.start(wait(2), isCounted: true, at: start + .seconds(3))
        schedule.start(wait(3, repeats: 1), isCounted: true, at: start + .seconds(3))
        #expect(schedule.nextDue(after: start + .seconds(3)) == start + .seconds(10))
        #expect(schedule.removeDue(at: start + .seconds(9)).isEmpty)
        #expect(schedule.removeDue(at: start + .seconds(10)) == [wait(1)])
        #expect(schedule.removeDue(at: start + .seconds(13)) == [wait(2)])
        #expect(schedule.nextDue(after: start + .seconds(13)) == start + .seconds(23))
        #expect(schedule.removeDue(at: start + .seconds(23)) == [wait(3, repeats: 1)])
        #expect(schedule.count == 0 && schedule.nextDue(after: start) == nil)
    }

    @Test("time that does not count does not pass: without a connection, a reader or the user")
    func standing() {
        var schedule = ResendSchedule()
        schedule.start(wait(1, row: 1), isCounted: true, at: start)
        schedule.start(wait(2, row: 2), isCounted: false, at: start)
        schedule.updateClocks(at: start + .seconds(4)) { _ in false }
        #expect(schedule.nextDue(after: start + .seconds(4)) == nil)
        #expect(schedule.removeDue(at: start + .seconds(10_000)).isEmpty)
        schedule.updateClocks(at: start + .seconds(1_000)) { $0 == 1 }
        #expect(schedule.nextDue(after: start + .seconds(1_001)) == start + .seconds(1_006))
        #expect(schedule.removeDue(at: start + .seconds(1_006)) == [wait(1, row: 1)])
        schedule.updateClocks(at: start + .seconds(2_000)) { $0 == 2 }
        #expect(schedule.removeDue(at: start + .seconds(2_009)).isEmpty)
        #expect(schedule.removeDue(at: start + .seconds(2_010)) == [wait(2, row: 2)])
    }

    @Test("a confirmed oplog waits no more, and one handed out anew waits from then on")
    func stopAndReplace() {
        var schedule = ResendSchedule()
        for id in Int64(1)...3 { schedule.start(wait(id), isCounted: true, at: start) }
        schedule.stop(channelRow: 1, oplogID: 1)
        schedule.stop(channelRow: 1, oplogID: 99)
        schedule.start(wait(2), isCounted: true, at: start + .seconds(5))
        #expect(schedule.removeDue(at: start + .seconds(10)) == [wait(3)])
        #expect(schedule.nextDue(after: start + .seconds(10)) == start + .seconds(15))
        #expect(schedule.removeDue(at: start + .seconds(20)) == [wait(2)])
    }

    @Test("a first wait that the gateway names later holds for what waits already") func newLadder() {
        var schedule = ResendSchedule()
        schedule.start(wait(1), isCounted: true, at: start)
        schedule.ladder = ResendLadder(firstWait: .seconds(1))
        #expect(schedule.nextDue(after: start) == start + .seconds(1))
    }

    @Test("random events give the same waits as a simple list") func random() {
        for seed in UInt64(1)...200 {
            var random = SeededGenerator(seed: seed)
            var schedule = ResendSchedule()
            var now = start
            var counted: Set<Int64> = [1]
            // By channel and oplog: the wait, and the rest of its counted time.
            var model: [[Int64]: (wait: ResendSchedule.Wait, left: Duration)] = [:]
            for _ in 0..<120 {
                let (row, id) = (Int64.random(in: 1...3, using: &random), Int64.random(in: 1...12, using: &random))
                switch Int.random(in: 0..<5, using: &random) {
                case 0, 1:
                    let wait = wait(id, row: row, repeats: Int.random(in: 0...6, using: &random))
                    schedule.start(wait, isCounted: counted.contains(row), at: now)
                    model[[row, id]] = (wait, schedule.ladder.next(after: wait.state).wait)
                case 2:
                    schedule.stop(channelRow: row, oplogID: id)
                    model[[row, id]] = nil
                case 3:
                    if counted.remove(row) == nil { counted.insert(row) }
                    let running = counted
                    schedule.updateClocks(at: now) { running.contains($0) }
                default:
                    let step = Duration.seconds(Int64.random(in: 1...60, using: &random))
                    now += step
                    for key in model.keys where counted.contains(key[0]) { model[key]?.left -= step }
                }
                let due = model.filter { counted.contains($0.key[0]) && $0.value.left <= .zero }
                #expect(Set(schedule.removeDue(at: now)) == Set(due.values.map(\.wait)), "seed \(seed)")
                for key in due.keys { model[key] = nil }
                let next = model.filter { counted.contains($0.key[0]) }.map(\.value.left).min()
                #expect(schedule.nextDue(after: now) == next.map { now + $0 }, "seed \(seed)")
                #expect(schedule.count == model.count, "seed \(seed)")
            }
        }
    }
}
