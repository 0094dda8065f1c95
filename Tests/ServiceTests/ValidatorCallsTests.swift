import SyncModel
import Testing

@testable import SessionValidator
@testable import TenantCalls

@Suite("Calls to tenants")
struct ValidatorCallsTests {
    private typealias Calls = InFlightCalls<Int>

    private let start = ContinuousClock.now

    private func question(_ session: String, of instance: String = "a") -> Calls.Question {
        Calls.Question(instanceID: InstanceID(instance), userID: UserID("u"), sessionID: SessionID(session))
    }

    /// The calls and answers of actions, as texts that compare.
    private func spelled(_ actions: [Calls.Action]) -> [String] {
        actions.map { action in
            switch action {
            case .call(let question): "call \(question.sessionID)"
            case .answer(let askers, .valid): "valid \(askers)"
            case .answer(let askers, .invalid): "invalid \(askers)"
            case .answer(let askers, .unknown), .answer(let askers, .noAnswer): "unknown \(askers)"
            }
        }
    }

    @Test("V5: one call answers everybody who asked meanwhile, and the next question is a new call")
    func joined() {
        var calls = Calls(concurrency: 1, runningMax: 2_000, patience: .seconds(8))
        #expect(spelled(calls.ask(question("s"), 1, now: start)) == ["call s"])
        #expect(spelled(calls.ask(question("s"), 2, now: start)) == [])
        #expect(spelled(calls.ended(question("s"), .valid, now: start)) == ["valid [1, 2]"])
        #expect(calls.count == 0)
        #expect(spelled(calls.ask(question("s"), 3, now: start)) == ["call s"])
    }

    @Test("V5: sessions, users and instances are told apart")
    func apart() {
        var calls = Calls(concurrency: 9, runningMax: 2_000, patience: .seconds(8))
        _ = calls.ask(question("s"), 1, now: start)
        #expect(spelled(calls.ask(question("t"), 2, now: start)) == ["call t"])
        #expect(spelled(calls.ask(question("s", of: "b"), 3, now: start)) == ["call s"])
        let other = Calls.Question(instanceID: InstanceID("a"), userID: UserID("v"), sessionID: SessionID("s"))
        #expect(spelled(calls.ask(other, 4, now: start)) == ["call s"])
    }

    @Test("V5: a tenant at its limit makes its own questions wait, in order, and nobody else's")
    func limited() {
        var calls = Calls(concurrency: 1, runningMax: 2_000, patience: .seconds(8))
        _ = calls.ask(question("s1"), 1, now: start)
        #expect(spelled(calls.ask(question("s2"), 2, now: start)) == [])
        #expect(spelled(calls.ask(question("s3"), 3, now: start)) == [])
        #expect(spelled(calls.ask(question("s1", of: "b"), 4, now: start)) == ["call s1"])
        #expect(spelled(calls.ended(question("s1"), .invalid(""), now: start)) == ["invalid [1]", "call s2"])
        #expect(spelled(calls.ended(question("s2"), .valid, now: start)) == ["valid [2]", "call s3"])
    }

    @Test("V5: a full line answers unknown at once")
    func bounded() {
        var calls = Calls(concurrency: 1, runningMax: 2_000, patience: .seconds(8))
        for number in 0...Calls.waitingMax { _ = calls.ask(question("s\(number)"), number, now: start) }
        #expect(spelled(calls.ask(question("late"), -1, now: start)) == ["unknown [-1]"])
        for number in 0..<Calls.askersMax { _ = calls.ask(question("s0"), number, now: start) }
        #expect(spelled(calls.ask(question("s0"), -2, now: start)) == ["unknown [-2]"])
        #expect(calls.count == Calls.waitingMax + 1)
    }

    @Test("V5: a question that waited longer than its asker is not put to the tenant")
    func impatient() {
        var calls = Calls(concurrency: 1, runningMax: 2_000, patience: .seconds(8))
        _ = calls.ask(question("s1"), 1, now: start)
        _ = calls.ask(question("s2"), 2, now: start)
        _ = calls.ask(question("s3"), 3, now: start + .seconds(5))
        let actions = calls.ended(question("s1"), .valid, now: start + .seconds(8))
        #expect(spelled(actions) == ["valid [1]", "unknown [2]", "call s3"])
    }

    @Test("V5: five failures in a row rest a tenant for two seconds, then one trial decides; others are not held up")
    func breaker() {
        var calls = Calls(concurrency: 2, runningMax: 2_000, patience: .seconds(8))
        func fail(_ session: String, at now: ContinuousClock.Instant) {
            _ = calls.ask(question(session), 0, now: now)
            _ = calls.ended(question(session), .noAnswer(""), now: now)
        }
        for number in 1...4 { fail("f\(number)", at: start) }
        #expect(spelled(calls.ask(question("s1"), 1, now: start)) == ["call s1"])
        #expect(spelled(calls.ask(question("s2"), 2, now: start)) == ["call s2"])
        #expect(spelled(calls.ask(question("s3"), 3, now: start)) == [])
        // The fifth failure: what waits is answered, and nothing goes out.
        #expect(spelled(calls.ended(question("s1"), .noAnswer(""), now: start)) == ["unknown [1]", "unknown [3]"])
        #expect(spelled(calls.ask(question("s4"), 4, now: start + .milliseconds(1_999))) == ["unknown [4]"])
        #expect(spelled(calls.ask(question("s4", of: "b"), 5, now: start)) == ["call s4"])
        // A call from before, which succeeds late, says nothing of now.
        #expect(spelled(calls.ended(question("s2"), .valid, now: start + .seconds(1))) == ["valid [2]"])
        #expect(spelled(calls.ask(question("s5"), 5, now: start + .milliseconds(1_999))) == ["unknown [5]"])
        // One trial; its failure rests the tenant again.
        #expect(spelled(calls.ask(question("t1"), 6, now: start + .seconds(2))) == ["call t1"])
        #expect(spelled(calls.ask(question("t2"), 7, now: start + .seconds(2))) == ["unknown [7]"])
        _ = calls.ended(question("t1"), .noAnswer(""), now: start + .seconds(3))
        #expect(spelled(calls.ask(question("t2"), 7, now: start + .milliseconds(4_999))) == ["unknown [7]"])
        // The next trial succeeds, and everything is as at the beginning.
        #expect(spelled(calls.ask(question("t3"), 8, now: start + .seconds(5))) == ["call t3"])
        _ = calls.ended(question("t3"), .invalid(""), now: start + .seconds(5))
        for number in 1...4 { fail("g\(number)", at: start + .seconds(6)) }
        #expect(spelled(calls.ask(question("t4"), 9, now: start + .seconds(6))) == ["call t4"])
    }

    @Test("a success between failures starts the count anew")
    func failuresInARow() throws {
        var breaker = CircuitBreaker()
        for number in 0..<50 {
            let pass = breaker.pass(at: start)
            breaker.ended(try #require(pass), withAnswer: number % 5 == 4, at: start)
        }
        let isOpen = breaker.pass(at: start) == nil
        #expect(!isOpen)
    }

    @Test("V5: while a trial is under way, a call from before it neither ends the rest nor begins it anew")
    func trial() throws {
        for isAnswer in [false, true] {
            var breaker = CircuitBreaker()
            func pass(_ now: ContinuousClock.Instant) -> CircuitBreaker.Pass? { breaker.pass(at: now) }
            let early = try #require(pass(start))
            for _ in 0..<CircuitBreaker.failuresToOpen {
                breaker.ended(try #require(pass(start)), withAnswer: false, at: start)
            }
            let trialAt = start + CircuitBreaker.openFor
            let trial = try #require(pass(trialAt))
            breaker.ended(early, withAnswer: isAnswer, at: trialAt)
            // The trial alone decides.
            #expect(pass(trialAt) == nil)
            #expect(pass(trialAt + CircuitBreaker.openFor) == nil)
            breaker.ended(trial, withAnswer: true, at: trialAt)
            #expect(pass(trialAt) != nil)
        }
    }

    @Test("V5: what is under way has a bound over all tenants; beyond it the verdict is unknown at once")
    func boundedOverAll() {
        var calls = Calls(concurrency: 2, runningMax: 3, patience: .seconds(8))
        for (number, instance) in ["a", "a", "b"].enumerated() {
            _ = calls.ask(question("s\(number)", of: instance), number, now: start)
        }
        #expect(spelled(calls.ask(question("c", of: "c"), 3, now: start)) == ["unknown [3]"])
        // It waits in its tenant's own line, and takes the place of the one that ends.
        #expect(spelled(calls.ask(question("w"), 4, now: start)) == [])
        #expect(spelled(calls.ended(question("s0"), .valid, now: start)) == ["valid [0]", "call w"])
        #expect(spelled(calls.ask(question("c", of: "c"), 5, now: start)) == ["unknown [5]"])
        _ = calls.ended(question("s2", of: "b"), .valid, now: start)
        #expect(spelled(calls.ask(question("c", of: "c"), 6, now: start)) == ["call c"])
    }

    @Test("V5: who makes up sessions that a tenant answers with an error does not keep others from being checked")
    func answeredErrors() {
        var calls = Calls(concurrency: 1, runningMax: 2_000, patience: .seconds(8))
        for number in 0..<100 {
            _ = calls.ask(question("made-up-\(number)"), 0, now: start)
            _ = calls.ended(question("made-up-\(number)"), .unknown("the call failed"), now: start)
        }
        #expect(spelled(calls.ask(question("s"), 1, now: start)) == ["call s"])
    }
}
