import BusMessages
import Credentials
import DeliveryHistory
import NIOHTTP1
import ServiceKit
import SwiftProtobuf
import SyncModel
import Synchronization
import TestSupport
import Testing

@testable import BackendCalls
@testable import IngestAPI

@Suite("Ingest: limits of callers")
struct IngestRateTests {
    private static func caller(_ key: String = "k1", perSecond: Int? = nil, perDay: Int? = nil) -> APICaller {
        APICaller(
            instanceID: InstanceID("w_app"), keyID: key,
            limits: KeyLimits(requestsPerSecond: perSecond, pushesPerDay: perDay))
    }

    @Test("A second's calls may come at once, then they come back evenly; others are not affected")
    func rates() throws {
        let rates = CallRates()
        let start = ContinuousClock.now
        func charge(_ caller: APICaller, after milliseconds: Int) throws -> CallRates.Outcome {
            try #require(rates.charge(caller, now: start + .milliseconds(milliseconds)))
        }
        let caller = Self.caller(perSecond: 4)
        for remaining in [3, 2, 1, 0] {
            let outcome = try charge(caller, after: 0)
            #expect(
                outcome
                    == .init(waitSeconds: nil, status: RateLimitStatus(limit: 4, remaining: remaining, resetSeconds: 1))
            )
        }
        #expect(try charge(caller, after: 0).waitSeconds == 1)
        #expect(try charge(Self.caller("k2", perSecond: 4), after: 0).waitSeconds == nil)
        #expect(try charge(caller, after: 249).waitSeconds == 1)
        #expect(try charge(caller, after: 250).waitSeconds == nil)
        #expect(try charge(caller, after: 251).waitSeconds == 1)
        #expect(try charge(caller, after: 5_000).status.remaining == 3)
        #expect(rates.charge(Self.caller("k3"), now: start) == nil)
        let slow = Self.caller("k4", perSecond: 1)
        #expect(try charge(slow, after: 0).status == RateLimitStatus(limit: 1, remaining: 0, resetSeconds: 1))
        #expect(try charge(slow, after: 999).waitSeconds == 1)
        #expect(try charge(slow, after: 1_000).waitSeconds == nil)
    }

    @Test("A returned call may be made at once; no more calls return than were made")
    func ratesBack() throws {
        let rates = CallRates()
        let start = ContinuousClock.now
        let caller = Self.caller(perSecond: 2)
        for _ in 0..<2 { #expect(rates.charge(caller, now: start)?.waitSeconds == nil) }
        #expect(rates.refund(caller, now: start) == RateLimitStatus(limit: 2, remaining: 1, resetSeconds: 1))
        #expect(rates.charge(caller, now: start)?.waitSeconds == nil)
        #expect(rates.charge(caller, now: start)?.waitSeconds == 1)
        for _ in 0..<9 { _ = rates.refund(caller, now: start) }
        for wait in [nil, nil, 1] { #expect(rates.charge(caller, now: start)?.waitSeconds == wait) }
        #expect(rates.refund(Self.caller("k3"), now: start) == nil)
    }

    @Test("Over many seconds a caller gets its rate, with any pattern of calls", arguments: [1, 3, 7, 100, 1_000])
    func randomRates(limit: Int) {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SeededGenerator(seed: seed)
        let rates = CallRates()
        let start = ContinuousClock.now
        var taken = 0
        var time = Duration.zero
        while time < .seconds(20) {
            time += .microseconds(Int.random(in: 0...(200_000 / limit), using: &generator))
            if rates.charge(Self.caller(perSecond: limit), now: start + time)?.waitSeconds == nil { taken += 1 }
        }
        #expect(taken <= limit * 21 && taken >= limit * 16, "seed \(seed): \(taken)")
    }

    @Test("Every answer to a limited key names its limits; over the rate it is 429 with the wait")
    func headers() async throws {
        let signer = IngestSigner()
        let directory = signer.directory(limits: KeyLimits(requestsPerSecond: 1))
        let submission = StubSubmission()
        let admission = RequestAdmission.stub(directory: directory, ring: IngestSigner.ring)
        try await IngestServerFixture.serve(submission: submission, directory: directory, admission: admission) {
            port in
            // All in one write, so that less than a second passes between them and most exceed the rate.
            let kept = (0..<9).map { _ in signer.request().replacing("Connection: close\r\n", with: "") }.joined()
            let all = try await IngestServerFixture.exchange(port, kept + signer.request())
            let refusal = try #require(all.firstIndex { $0.status == 429 })
            let answers = all[(refusal - 1)...refusal]
            #expect(all.first?.status == 200 && answers.map(\.status) == [200, 429])
            for answer in answers {
                #expect(answer.fields["ratelimit-limit"] == "1" && answer.fields["ratelimit-remaining"] == "0")
                #expect(answer.fields["ratelimit-reset"] == "1")
            }
            #expect(answers.map { $0.fields["retry-after"] } == [nil, "1"])
            #expect(all[refusal].refusalFlaw == nil)
            #expect(submission.pushes.count == all.count { $0.status == 200 })
        }
    }

    @Test("An instance's limit holds for calls without a key")
    func unsigned() async throws {
        var directory = StubDirectory()
        directory.add(
            Instance(
                id: InstanceID("w_app"), name: "", isEnabled: true, validatorURL: "", verdictLifetime: .zero,
                limits: KeyLimits(requestsPerSecond: 1)))
        try await IngestServerFixture.serve(directory: directory) { port in
            let kept = String(repeating: IngestSmugglingCase.push(), count: 9)
            let answers = try await IngestServerFixture.exchange(
                port, kept + IngestSmugglingCase.push("Connection: close\r\n"))
            let statuses = answers.map(\.status)
            #expect(statuses.first == 200 && Set(statuses) == [200, 429])
        }
    }

    /// A store with the daily quota of one caller.
    private final class Day: Sendable {
        private let state = Mutex<(left: Int, asked: [Int], isAway: Bool)>((0, [], false))
        static let end: Int64 = 1_700_006_400_000
        private let endsInMilliseconds: Int64

        init(_ pushes: Int, endsInMilliseconds: Int64 = 6_400_000) {
            self.endsInMilliseconds = endsInMilliseconds
            state.withLock { $0.left = pushes }
        }

        var asked: [Int] { state.withLock { $0.asked } }
        func setAway(_ isAway: Bool) { state.withLock { $0.isAway = isAway } }

        @Sendable func grant(_ wish: Mss_Bus_V1_TakeQuota) -> Result<Mss_Bus_V1_QuotaReply, BusError> {
            state.withLock { state in
                // An endless loop of requests must fail, not hang.
                guard !state.isAway, state.asked.count < 1_000 else { return .failure(BusError(.unanswered, "away")) }
                state.asked.append(Int(wish.pushes))
                let granted = min(state.left, Int(wish.pushes))
                state.left -= granted
                let left = state.left
                return .success(
                    .with {
                        $0.granted = UInt64(granted)
                        $0.remaining = UInt64(left)
                        $0.resetsAtMs = Self.end
                        $0.resetsInMs = endsInMilliseconds
                    })
            }
        }
    }

    private func isGranted(_ outcome: PushQuotas.Outcome) -> Bool {
        if case .granted = outcome { true } else { false }
    }

    @Test("All ingests together use a day's pushes completely, in few requests, and never one more")
    func days() async throws {
        let day = Day(10_000)
        let ingests = [PushQuotas.stub(day.grant), PushQuotas.stub(day.grant)]
        let caller = Self.caller(perDay: 10_000)
        let granted = await withTaskGroup(of: Int.self) { group in
            for number in 0..<16 {
                group.addTask {
                    var own = 0
                    for _ in 0..<1_000 {
                        if case .granted = await ingests[number % 2].spend(1, of: caller) { own += 1 }
                    }
                    return own
                }
            }
            return await group.reduce(0, +)
        }
        #expect(granted == 10_000)
        #expect(day.asked.count < 700, "\(day.asked.count)")
    }

    @Test("Used up: 429 until midnight; a batch is stored whole or not at all; unstored pushes are returned")
    func usedUp() async throws {
        let day = Day(10)
        let quotas = PushQuotas.stub(day.grant)
        let caller = Self.caller(perDay: 10)
        let grant = await quotas.spend(4, of: caller)
        guard case .granted(let paid) = grant else { throw Failed() }
        #expect(!isGranted(await quotas.spend(7, of: caller)))
        await quotas.refund(1, of: paid)
        #expect(isGranted(await quotas.spend(7, of: caller)))
        let asked = day.asked.count
        guard case .refused(let answer) = await quotas.spend(1, of: caller) else { throw Failed() }
        #expect(day.asked.count == asked, "the store is not asked what is known")
        #expect(HTTPAnswer(answer).status == .tooManyRequests && answer.retryAfterSeconds == 6_400)
        #expect(HTTPAnswer(answer).rate == RateLimitStatus(limit: 10, remaining: 0, resetSeconds: 6_400))
        #expect(isGranted(await quotas.spend(1, of: nil)))
        #expect(isGranted(await quotas.spend(1, of: Self.caller("other"))))
    }

    private struct Failed: Error {}

    @Test("H9: the day ends by the store's clock; an ingest with a wrong clock requests quota once for many")
    func otherClocks() async {
        for difference: Int64 in [-86_400_000, -120_000, 120_000, 86_400_000] {
            let day = Day(1_000)
            let quotas = PushQuotas.stub(now: { WallTime(milliseconds: Day.end + difference) }, day.grant)
            for _ in 0..<15 { #expect(isGranted(await quotas.spend(1, of: Self.caller(perDay: 1_000)))) }
            #expect(day.asked == [15], "\(difference) ms after midnight")
        }
    }

    @Test("H9: granted pushes can be used, also when their day is over as the reply arrives", arguments: [0, -5])
    func midnight(milliseconds: Int64) async {
        let day = Day(1_000, endsInMilliseconds: milliseconds)
        let quotas = PushQuotas.stub(day.grant)
        for _ in 0..<3 { #expect(isGranted(await quotas.spend(1, of: Self.caller(perDay: 1_000)))) }
        #expect(day.asked.count == 3)
    }

    @Test("H9: unanswered quota requests cost the day no more than their pushes")
    func unanswered() async {
        let asked = Mutex<[UInt64]>([])
        let quotas = PushQuotas.stub({ wish in
            let count = asked.withLock { asked in
                asked.append(wish.pushes)
                return asked.count
            }
            guard count > 3 else { return .failure(BusError(.unanswered, "lost")) }
            return .success(
                .with {
                    $0.granted = wish.pushes
                    $0.remaining = 640
                    $0.resetsAtMs = Day.end
                    $0.resetsInMs = 1_000
                })
        })
        for isAnswered in [false, false, false, true, true] {
            #expect(isGranted(await quotas.spend(2, of: Self.caller(perDay: 6_400))) == isAnswered)
        }
        #expect(asked.withLock { $0 } == [100, 2, 2, 2, 10])
    }

    @Test("Without the store's reply no push is made, with any number waiting; then they are")
    func away() async {
        let day = Day(1_000)
        day.setAway(true)
        let quotas = PushQuotas.stub(day.grant)
        let caller = Self.caller(perDay: 1_000)
        let refused = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<50 {
                group.addTask {
                    guard case .refused(let answer) = await quotas.spend(1, of: caller) else { return false }
                    return HTTPAnswer(answer).status == .serviceUnavailable
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(refused == 50)
        day.setAway(false)
        #expect(isGranted(await quotas.spend(1, of: caller)))
    }

    @Test("A new day begins anew, and another limit holds from the next push on")
    func change() async {
        let time = Mutex<Int64>(1_700_000_000_000)
        let asked = Mutex<[Int]>([])
        let now: @Sendable () -> WallTime = { WallTime(milliseconds: time.withLock { $0 }) }
        let start = ContinuousClock.now
        let instant: @Sendable () -> ContinuousClock.Instant = {
            start + .milliseconds(time.withLock { $0 } - 1_700_000_000_000)
        }
        let quotas = PushQuotas.stub(now: now, instant: instant) { wish in
            asked.withLock { $0.append(Int(wish.pushesPerDay)) }
            let now = time.withLock { $0 }
            let end = (now / 86_400_000 + 1) * 86_400_000
            return .success(
                .with {
                    $0.granted = min(wish.pushes, wish.pushesPerDay)
                    $0.resetsAtMs = end
                    $0.resetsInMs = end - now
                })
        }
        #expect(isGranted(await quotas.spend(2, of: Self.caller(perDay: 2))))
        #expect(!isGranted(await quotas.spend(1, of: Self.caller(perDay: 2))))
        #expect(isGranted(await quotas.spend(1, of: Self.caller(perDay: 3))))
        time.withLock { $0 += 86_400_000 }
        #expect(isGranted(await quotas.spend(2, of: Self.caller(perDay: 3))))
        #expect(asked.withLock { $0 } == [2, 3, 3])
    }

    @Test("A batch costs what it stores; a dry run, a recall and a trace cost nothing")
    func batch() async {
        let day = Day(3)
        let quotas = PushQuotas.stub(day.grant)
        let intake = PushIntake.stub()
        let item = #"{"bizType":"orders","linkToken":"u","thirdMsgId":"m","payload":"p"}"#
        let caller = Self.caller(perDay: 3)
        func batch(_ items: [String], isDryRun: Bool = false) async -> APIAnswer {
            await intake.answerBatch(
                instanceID: "w_app", body: Array(#"{"items":[\#(items.joined(separator: ","))]}"#.utf8),
                isDryRun: isDryRun, paying: { await quotas.charge($0, to: caller, $1) })
        }
        #expect(await batch([item, item, item, item], isDryRun: true).isAttempted)
        let tooMany = await batch([item, item, item, item])
        #expect(tooMany.code == .tooLarge && !tooMany.isRetryable, "no day has so many")
        // One of the two pushes is refused and uses no quota.
        #expect(await batch([item, "{}"]).isAttempted)
        #expect(await batch([item, item]).isAttempted)
        let last = await intake.answer(
            scope: .single, instanceID: "w_app", body: Array(item.utf8),
            paying: { await quotas.charge($0, to: caller, $1) })
        #expect(last.reachedLimit != nil && last.code == .rateLimited && last.isRetryable)
    }
}
