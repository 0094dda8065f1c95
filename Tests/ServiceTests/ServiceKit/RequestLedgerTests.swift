import BusMessages
import ServiceKit
import Synchronization
import Testing

@Suite("Requests end exactly once") struct RequestLedgerTests {
    private final class Ends: Sendable {
        private let seen = Mutex<[String]>([])
        var all: [String] { seen.withLock { $0 } }
        func clear() { seen.withLock { $0 = [] } }
        func completion(_ name: String) -> RequestLedger.Completion {
            { result in
                let end =
                    switch result {
                    case .success: "answered"
                    case .failure(let error): "\(error.code)"
                    }
                self.seen.withLock { $0.append("\(name) \(end)") }
            }
        }
    }

    private let ledger = RequestLedger()
    private let ends = Ends()
    private let now = ContinuousClock.now

    @Test("by the reply; a second reply is dropped") func replies() {
        let first = ledger.open(deadline: now, answeredBy: .stored, ends.completion("a"))
        let second = ledger.open(deadline: now, answeredBy: .stored, ends.completion("b"))
        #expect(first != second)
        for _ in 0..<2 {
            let isOurs = ledger.answer(second, by: .stored, with: .success(Mss_Bus_V1_Reply()))
            #expect(isOurs)
        }
        #expect(ends.all == ["b answered"] && ledger.count == 1)
    }

    @Test("SEC10: never by a reply from an unexpected sender: it is refused, and the request stays open")
    func strangers() {
        let ways = AnswerExchange.allCases
        for asked in ways {
            let number = ledger.open(deadline: now, answeredBy: asked, ends.completion("a"))
            for way in ways where way != asked {
                let isOurs = ledger.answer(number, by: way, with: .success(Mss_Bus_V1_Reply()))
                #expect(!isOurs)
            }
            #expect(ledger.count == 1 && ends.all.isEmpty)
            ledger.close(number, with: .failure(BusError(.unavailable, "")))
            #expect(ledger.count == 0)
            ends.clear()
        }
    }

    @Test("by the deadline; a reply that comes too late is dropped") func deadlines() {
        let late = ledger.open(deadline: now, answeredBy: .stored, ends.completion("late"))
        _ = ledger.open(deadline: now + .seconds(1), answeredBy: .stored, ends.completion("later"))
        ledger.expire(now: now)
        _ = ledger.answer(late, by: .stored, with: .success(Mss_Bus_V1_Reply()))
        #expect(ends.all == ["late unanswered"] && ledger.count == 1)
    }

    @Test("by a lost connection") func connections() {
        for name in ["a", "b"] { _ = ledger.open(deadline: now, answeredBy: .stored, ends.completion(name)) }
        ledger.failAll(BusError(.unanswered, "gone"))
        ledger.expire(now: now)
        #expect(ends.all.sorted() == ["a unanswered", "b unanswered"] && ledger.count == 0)
    }
}
