import SyncModel
import Synchronization
import Testing

@testable import Gateway
@testable import OplogWriter

@Suite("H4: what gateways say of data that is stored nowhere") struct LiveDeliveryTests {
    private func outcomes(
        of ids: [Int64], _ answers: [[Int64]?], missed: [Int64] = []
    ) -> [LiveDelivery.Outcome]? {
        let known = Mutex<[LiveDelivery.Outcome]?>(nil)
        let delivery = LiveDelivery(gateways: answers.count) { outcome in
            known.withLock { $0 = ids.map { outcome(OplogID($0)) } }
        }
        for answer in answers { delivery.answered(answer, missed: missed) }
        return known.withLock { $0 }
    }

    @Test("one that took it is enough; all must say no; silence leaves it open") func rules() {
        #expect(outcomes(of: [1, 2], [[1], [2]]) == [.taken, .taken])
        #expect(outcomes(of: [1, 2], [[], [2]]) == [.notTaken, .taken])
        #expect(outcomes(of: [1, 2], [nil, [2]]) == [.uncertain, .taken])
    }

    @Test("a connected device that could not be given it any more was not offline")
    func missed() {
        #expect(outcomes(of: [1, 2, 3], [[], [2]], missed: [1, 2]) == [.uncertain, .taken, .notTaken])
    }

    @Test("nothing is known before the last gateway has answered") func waits() {
        let isKnown = Mutex(false)
        let delivery = LiveDelivery(gateways: 2) { _ in isKnown.withLock { $0 = true } }
        delivery.answered([1])
        #expect(!isKnown.withLock { $0 })
        delivery.answered(nil)
        #expect(isKnown.withLock { $0 })
    }

    @Test("a gateway answers once all of its sessions were asked, also when there is none") func counts() {
        let said = Mutex<[TakenEntries]>([])
        let count = TakenCount(sessions: 2) { ids in said.withLock { $0.append(ids) } }
        count.add(TakenEntries(held: [2], missed: [1, 3]))
        #expect(said.withLock { $0 }.isEmpty)
        count.add(TakenEntries(held: [1, 2]))
        _ = TakenCount(sessions: 0) { ids in said.withLock { $0.append(ids) } }
        #expect(said.withLock { $0 } == [TakenEntries(held: [1, 2], missed: [3]), TakenEntries()])
    }
}
