import SyncModel
import Testing

@testable import SessionValidator
@testable import TenantCalls

@Suite("Calls to tenants")
struct ValidatorCallsTests {
    private typealias Calls = InFlightCalls<Int>

    private let start = ContinuousClock.now

    private func question(_ session: String, of instance: String = "a") -> Calls.Request {
        Calls.Request(instanceID: InstanceID(instance), userID: UserID("u"), sessionID: SessionID(session))
    }

    /// The calls and replies of the actions, as texts to compare.
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

    @Test("V5: one call answers all requests that joined it, and the next request is a new call")
    func joined() {
        var calls = Calls(concurrency: 1, runningMax: 2_000, waitLimit: .seconds(8))
        #expect(spelled(calls.add(question("s"), 1, now: start)) == ["call s"])
        #expect(spelled(calls.add(question("s"), 2, now: start)) == [])
        #expect(spelled(calls.ended(question("s"), .valid, now: start)) == ["valid [1, 2]"])
        #expect(calls.count == 0)
        #expect(spelled(calls.add(question("s"), 3, now: start)) == ["call s"])
    }

    @Test("V5: sessions, users and instances have calls of their own")
    func apart() {
        var calls = Calls(concurrency: 9, runningMax: 2_000, waitLimit: .seconds(8))
        _ = calls.add(question("s"), 1, now: start)
        #expect(spelled(calls.add(question("t"), 2, now: start)) == ["call t"])
        #expect(spelled(calls.add(question("s", of: "b"), 3, now: start)) == ["call s"])
        let other = Calls.Request(instanceID: InstanceID("a"), userID: UserID("v"), sessionID: SessionID("s"))
        #expect(spelled(calls.add(other, 4, now: start)) == ["call s"])
    }

    @Test("V5: a tenant at its limit delays only its own requests, in order")
    func limited() {
        var calls = Calls(concurrency: 1, runningMax: 2_000, waitLimit: .seconds(8))
        _ = calls.add(question("s1"), 1, now: start)
        #expect(spelled(calls.add(question("s2"), 2, now: start)) == [])
        #expect(spelled(calls.add(question("s3"), 3, now: start)) == [])
        #expect(spelled(calls.add(question("s1", of: "b"), 4, now: start)) == ["call s1"])
        #expect(spelled(calls.ended(question("s1"), .invalid(""), now: start)) == ["invalid [1]", "call s2"])
        #expect(spelled(calls.ended(question("s2"), .valid, now: start)) == ["valid [2]", "call s3"])
    }

    @Test("V5: a full queue answers unknown at once")
    func bounded() {
        var calls = Calls(concurrency: 1, runningMax: 2_000, waitLimit: .seconds(8))
        for number in 0...Calls.waitingMax { _ = calls.add(question("s\(number)"), number, now: start) }
        #expect(spelled(calls.add(question("late"), -1, now: start)) == ["unknown [-1]"])
        for number in 0..<Calls.requestersMax { _ = calls.add(question("s0"), number, now: start) }
        #expect(spelled(calls.add(question("s0"), -2, now: start)) == ["unknown [-2]"])
        #expect(calls.count == Calls.waitingMax + 1)
    }

    @Test("V5: a request that waited longer than its caller is not sent to the tenant")
    func impatient() {
        var calls = Calls(concurrency: 1, runningMax: 2_000, waitLimit: .seconds(8))
        _ = calls.add(question("s1"), 1, now: start)
        _ = calls.add(question("s2"), 2, now: start)
        _ = calls.add(question("s3"), 3, now: start + .seconds(5))
        let actions = calls.ended(question("s1"), .valid, now: start + .seconds(8))
        #expect(spelled(actions) == ["valid [1]", "unknown [2]", "call s3"])
    }

    @Test("V5: five failures in a row open the breaker for 2 s, then one trial decides; others continue")
    func breaker() {
        var calls = Calls(concurrency: 2, runningMax: 2_000, waitLimit: .seconds(8))
        func fail(_ session: String, at now: ContinuousClock.Instant) {
            _ = calls.add(question(session), 0, now: now)
            _ = calls.ended(question(session), .noAnswer(""), now: now)
        }
        for number in 1...4 { fail("f\(number)", at: start) }
        #expect(spelled(calls.add(question("s1"), 1, now: start)) == ["call s1"])
        #expect(spelled(calls.add(question("s2"), 2, now: start)) == ["call s2"])
        #expect(spelled(calls.add(question("s3"), 3, now: start)) == [])
        // The fifth failure: waiting requests are answered, and no call is made.
        #expect(spelled(calls.ended(question("s1"), .noAnswer(""), now: start)) == ["unknown [1]", "unknown [3]"])
        #expect(spelled(calls.add(question("s4"), 4, now: start + .milliseconds(1_999))) == ["unknown [4]"])
        #expect(spelled(calls.add(question("s4", of: "b"), 5, now: start)) == ["call s4"])
        // The late success of an earlier call does not close the circuit breaker.
        #expect(spelled(calls.ended(question("s2"), .valid, now: start + .seconds(1))) == ["valid [2]"])
        #expect(spelled(calls.add(question("s5"), 5, now: start + .milliseconds(1_999))) == ["unknown [5]"])
        // One trial. Its failure opens the circuit breaker again.
        #expect(spelled(calls.add(question("t1"), 6, now: start + .seconds(2))) == ["call t1"])
        #expect(spelled(calls.add(question("t2"), 7, now: start + .seconds(2))) == ["unknown [7]"])
        _ = calls.ended(question("t1"), .noAnswer(""), now: start + .seconds(3))
        #expect(spelled(calls.add(question("t2"), 7, now: start + .milliseconds(4_999))) == ["unknown [7]"])
        // The next trial succeeds and closes the circuit breaker.
        #expect(spelled(calls.add(question("t3"), 8, now: start + .seconds(5))) == ["call t3"])
        _ = calls.ended(question("t3"), .invalid(""), now: start + .seconds(5))
        for number in 1...4 { fail("g\(number)", at: start + .seconds(6)) }
        #expect(spelled(calls.add(question("t4"), 9, now: start + .seconds(6))) == ["call t4"])
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

    @Test("V5: a call from before a trial neither closes nor reopens the breaker")
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
            // Only the trial decides.
            #expect(pass(trialAt) == nil)
            #expect(pass(trialAt + CircuitBreaker.openFor) == nil)
            breaker.ended(trial, withAnswer: true, at: trialAt)
            #expect(pass(trialAt) != nil)
        }
    }

    @Test("V5: the calls in flight have a limit over all tenants; beyond it the verdict is unknown at once")
    func boundedOverAll() {
        var calls = Calls(concurrency: 2, runningMax: 3, waitLimit: .seconds(8))
        for (number, instance) in ["a", "a", "b"].enumerated() {
            _ = calls.add(question("s\(number)", of: instance), number, now: start)
        }
        #expect(spelled(calls.add(question("c", of: "c"), 3, now: start)) == ["unknown [3]"])
        // The call waits in its tenant's queue, and starts when another call ends.
        #expect(spelled(calls.add(question("w"), 4, now: start)) == [])
        #expect(spelled(calls.ended(question("s0"), .valid, now: start)) == ["valid [0]", "call w"])
        #expect(spelled(calls.add(question("c", of: "c"), 5, now: start)) == ["unknown [5]"])
        _ = calls.ended(question("s2", of: "b"), .valid, now: start)
        #expect(spelled(calls.add(question("c", of: "c"), 6, now: start)) == ["call c"])
    }

    @Test("V5: invented sessions that a tenant answers with an error do not block other checks")
    func answeredErrors() {
        var calls = Calls(concurrency: 1, runningMax: 2_000, waitLimit: .seconds(8))
        for number in 0..<100 {
            _ = calls.add(question("made-up-\(number)"), 0, now: start)
            _ = calls.ended(question("made-up-\(number)"), .unknown("the call failed"), now: start)
        }
        #expect(spelled(calls.add(question("s"), 1, now: start)) == ["call s"])
    }
}
