import DeliveryHistory
import Testing

@Suite("Checker of operations")
struct OperationCheckerTests {
    private var checker = OperationChecker()

    private mutating func submit(_ ids: String...) { for id in ids { checker.submit(id, by: "phone", to: "order") } }

    private mutating func call(_ id: String, _ outcome: OperationChecker.Outcome = .accepted) {
        _ = checker.call(id, by: "phone", to: "order", saying: outcome, at: .zero)
    }

    private mutating func deliverResult(_ id: String, _ isAccepted: Bool = true, to device: String = "phone") {
        checker.recordResult(id, to: device, isAccepted: isAccepted, code: isAccepted ? 200 : 409, at: .zero)
    }

    private func expect(_ promises: HistoryFault.Promise...) {
        #expect(checker.faults.map(\.promise) == promises)
        #expect(checker.faultCount == promises.count)
    }

    @Test("operations in order with results are correct, also with repeated calls and results")
    mutating func right() {
        submit("a", "b")
        call("a")
        call("a", .refused)
        call("b", .refused)
        deliverResult("a")
        deliverResult("a")
        checker.confirm("a")
        deliverResult("b", false)
        checker.expectNothingOpen(at: .zero)
        expect()
        #expect(checker.submitted == 2 && checker.decided == 2 && checker.told == 2 && checker.repeatedCalls == 1)
        #expect(checker.open == 0 && checker.open(of: "phone") == 0)
    }

    @Test("a repeated call is answered as the first one was")
    mutating func repeated() {
        submit("a")
        call("a", .refused)
        #expect(checker.call("a", by: "phone", to: "order", saying: .accepted, at: .zero) == .refused)
    }

    @Test("an operation before an earlier one is out of order")
    mutating func disorder() {
        submit("a", "b")
        call("b")
        expect(.ordered)
    }

    @Test("an operation that was not submitted, or has another device's name, is found")
    mutating func strangers() {
        call("x")
        deliverResult("x")
        submit("a")
        _ = checker.call("a", by: "tablet", to: "order", saying: .accepted, at: .zero)
        call("a")
        deliverResult("a", to: "tablet")
        expect(.attempted, .attempted, .addressed, .addressed)
    }

    @Test("an invented, a changed and a repeated result are found")
    mutating func results() {
        submit("a", "b")
        deliverResult("a")
        call("a")
        call("b", .refused)
        deliverResult("b")
        checker.confirm("b")
        deliverResult("b", false)
        expect(.attempted, .attempted, .delivered)
    }

    @Test("a repeated state, and one after a refusal, are found; other devices also get states")
    mutating func states() {
        submit("a", "b")
        call("a")
        call("b", .refused)
        for device in ["phone", "tablet"] {
            checker.recordState(after: "a", to: device, at: .zero)
            checker.confirm(stateAfter: "a", by: device)
        }
        expect()
        checker.recordState(after: "a", to: "phone", at: .zero)
        checker.recordState(after: "b", to: "phone", at: .zero)
        expect(.delivered, .attempted)
    }

    @Test("an operation without a result is found at the end")
    mutating func open() {
        submit("a")
        call("a")
        #expect(checker.open(of: "phone") == 1)
        #expect(checker.describeOpen(upTo: 3) == ["a of phone, accepted"])
        checker.expectNothingOpen(at: .zero)
        expect(.delivered)
    }
}
