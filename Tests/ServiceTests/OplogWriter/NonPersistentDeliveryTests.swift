import SyncModel
import Synchronization
import Testing

@testable import Gateway
@testable import OplogWriter

@Suite("H4: gateways' replies about non-persistent pushes") struct NonPersistentDeliveryTests {
    private func outcomes(
        of ids: [Int64], _ answers: [[Int64]?], missed: [Int64] = []
    ) -> [NonPersistentDelivery.Outcome]? {
        let known = Mutex<[NonPersistentDelivery.Outcome]?>(nil)
        let delivery = NonPersistentDelivery(gateways: answers.count) { outcome in
            known.withLock { $0 = ids.map { outcome(OplogID($0)) } }
        }
        for answer in answers { delivery.answered(answer, missed: missed) }
        return known.withLock { $0 }
    }

    @Test("one accepting gateway is enough; all must refuse; without a reply the outcome is open") func rules() {
        #expect(outcomes(of: [1, 2], [[1], [2]]) == [.taken, .taken])
        #expect(outcomes(of: [1, 2], [[], [2]]) == [.notTaken, .taken])
        #expect(outcomes(of: [1, 2], [nil, [2]]) == [.uncertain, .taken])
    }

    @Test("a connected device that missed the push was not offline")
    func missed() {
        #expect(outcomes(of: [1, 2, 3], [[], [2]], missed: [1, 2]) == [.uncertain, .taken, .notTaken])
    }

    @Test("the outcome is open until the last gateway has replied") func waits() {
        let isKnown = Mutex(false)
        let delivery = NonPersistentDelivery(gateways: 2) { _ in isKnown.withLock { $0 = true } }
        delivery.answered([1])
        #expect(!isKnown.withLock { $0 })
        delivery.answered(nil)
        #expect(isKnown.withLock { $0 })
    }

    @Test("a gateway replies when all of its sessions have decided, also without sessions") func counts() {
        let said = Mutex<[NoticeReplyEntries]>([])
        let count = NoticeReplyCollector(sessions: 2) { ids in said.withLock { $0.append(ids) } }
        count.add(NoticeReplyEntries(held: [2], missed: [1, 3]))
        #expect(said.withLock { $0 }.isEmpty)
        count.add(NoticeReplyEntries(held: [1, 2]))
        _ = NoticeReplyCollector(sessions: 0) { ids in said.withLock { $0.append(ids) } }
        #expect(said.withLock { $0 } == [NoticeReplyEntries(held: [1, 2], missed: [3]), NoticeReplyEntries()])
    }
}
