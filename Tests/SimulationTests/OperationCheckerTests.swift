import DeliveryHistory
import Testing

@Suite("Checker of operations")
struct OperationCheckerTests {
    private var checker = OperationChecker()

    private mutating func submit(_ ids: String...) { for id in ids { checker.submit(id, by: "phone", to: "order") } }

    private mutating func call(_ id: String, _ outcome: OperationChecker.Outcome = .accepted) {
        _ = checker.call(id, by: "phone", to: "order", saying: outcome, at: .zero)
    }

    private mutating func tell(_ id: String, _ isAccepted: Bool = true, to device: String = "phone") {
        checker.tell(id, to: device, isAccepted: isAccepted, code: isAccepted ? 200 : 409, at: .zero)
    }

    private func expect(_ promises: HistoryFault.Promise...) {
        #expect(checker.faults.map(\.promise) == promises)
        #expect(checker.faultCount == promises.count)
    }

    @Test("what is done in order and told is right, also when calls and results are repeated")
    mutating func right() {
        submit("a", "b")
        call("a")
        call("a", .refused)
        call("b", .refused)
        tell("a")
        tell("a")
        checker.confirm("a")
        tell("b", false)
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

    @Test("an operation before its elder is out of order")
    mutating func disorder() {
        submit("a", "b")
        call("b")
        expect(.ordered)
    }

    @Test("what nobody submitted, and what goes as another's, is seen")
    mutating func strangers() {
        call("x")
        tell("x")
        submit("a")
        _ = checker.call("a", by: "tablet", to: "order", saying: .accepted, at: .zero)
        call("a")
        tell("a", to: "tablet")
        expect(.attempted, .attempted, .addressed, .addressed)
    }

    @Test("a result that the tenant did not give, one that says otherwise, and one that comes again are seen")
    mutating func results() {
        submit("a", "b")
        tell("a")
        call("a")
        call("b", .refused)
        tell("b")
        checker.confirm("b")
        tell("b", false)
        expect(.attempted, .attempted, .delivered)
    }

    @Test("a state that comes again, and one after what was refused, are seen; other devices have it too")
    mutating func states() {
        submit("a", "b")
        call("a")
        call("b", .refused)
        for device in ["phone", "tablet"] {
            checker.give(stateAfter: "a", to: device, at: .zero)
            checker.confirm(stateAfter: "a", by: device)
        }
        expect()
        checker.give(stateAfter: "a", to: "phone", at: .zero)
        checker.give(stateAfter: "b", to: "phone", at: .zero)
        expect(.delivered, .attempted)
    }

    @Test("an operation without a result is seen at the end")
    mutating func open() {
        submit("a")
        call("a")
        #expect(checker.open(of: "phone") == 1)
        #expect(checker.describeOpen(upTo: 3) == ["a of phone, accepted"])
        checker.expectNothingOpen(at: .zero)
        expect(.delivered)
    }
}
