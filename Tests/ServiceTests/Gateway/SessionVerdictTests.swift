import BusMessages
import Credentials
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

private typealias Bench = SessionBench

@Suite("Verdicts in a session")
struct SessionVerdictTests {
    private let digest = SessionDigest.of("session")

    /// An open session with channel 3 (Sync ID B) after its first verdict.
    private func opened(_ lifetime: Duration?, head: Int64 = 0, verdict: Mss_Bus_V1_Verdict = .valid) -> SessionBench {
        var bench = Bench([Bench.configuration("B", checks: true, verdictLifetime: lifetime)])
        bench.open([("B", 3, head, head)])
        _ = bench.answer(verdict)
        return bench
    }

    private func notice(_ id: Int64) -> ChannelNotice { Bench.notice("B", channel: 3, after: id - 1, ids: [id]) }
    private func page(_ ids: [Int64]) -> Mss_Bus_V1_FetchReply { Bench.page(after: (ids.first ?? 1) - 1, ids: ids) }

    @Test("V5, I7: a verdict's age counts from the earliest time at which the tenant can have decided")
    func ageIsNeverUnderestimated() {
        var bench = opened(.seconds(1), verdict: .unknown)
        bench.now += .seconds(2)
        let questions = bench.handle(.ticked).questions
        #expect(questions == 1)
        let sentAt = bench.now
        bench.now += .milliseconds(300)
        // The request joined a call that was in flight for 600 ms, so the tenant may have decided that much earlier.
        _ = bench.answer(.valid, sentAt: sentAt, joinedAfter: 600)
        bench.now = sentAt + .milliseconds(399)
        #expect(bench.handle(.noticed(notice(1))).pushed == [1])
        bench.now = sentAt + .milliseconds(400)
        #expect(bench.handle(.noticed(notice(2))).pushed.isEmpty)
    }

    @Test("V5: with lifetime 0 each batch waits for a verdict request that began after it was there")
    func askedBeforeEveryBatch() {
        var bench = opened(.zero)
        let told = bench.handle(.noticed(notice(1)))
        #expect(told.pushed.isEmpty && told.fetches.count == 1 && told.questions == 0)
        let read = bench.handle(.fetched(page([1]), channelID: 3))
        #expect(read.pushed.isEmpty && read.questions == 1)
        let sentAt = bench.now
        bench.now += .milliseconds(20)
        let more = bench.handle(.noticed(notice(2)))
        #expect(more.questions == 0, "the question on its way is not restarted")
        let first = bench.answer(.valid, sentAt: sentAt)
        #expect(first.pushed == [1] && first.fetches.map(\.after) == [1])
        let second = bench.handle(.fetched(page([2]), channelID: 3))
        #expect(second.pushed.isEmpty && second.questions == 1, "the word of the first batch is used up")
        #expect(bench.answer(.invalid).pushed.isEmpty)
    }

    @Test("I7: a verdict that is older than its lifetime when the reply comes does not count; a quicker call does")
    func replyOfSlowCall() {
        var bench = opened(.seconds(1))
        bench.now += .seconds(2)
        _ = bench.handle(.noticed(notice(1)))
        #expect(bench.handle(.fetched(page([1]), channelID: 3)).questions == 1)
        let sentAt = bench.now
        bench.now += .seconds(1)
        let slow = bench.answer(.valid, sentAt: sentAt)
        #expect(slow.pushed.isEmpty && slow.fetches.isEmpty && slow.questions == 0)
        let live = Bench.notice("B", channel: 3, after: 1, ids: [2], persistent: false)
        _ = bench.handle(.noticed(live))
        #expect(bench.replyEntries(of: live).held.isEmpty, "no SUCCESS for data that is not sent")
        #expect(bench.handle(.ticked).questions == 1)
        let next = bench.now
        bench.now += .milliseconds(999)
        #expect(bench.answer(.valid, sentAt: next).fetches.map(\.after) == [0])
        #expect(bench.handle(.fetched(page([1]), channelID: 3)).pushed == [1])
    }

    @Test("V5: data that waits for two verdicts is read again after a slow call; no channel stops")
    func parkedDuringSlowCall() {
        var bench = Bench([
            Bench.configuration("B", checks: true, verdictLifetime: .seconds(1)),
            Bench.configuration("C", checks: true, verdictLifetime: .seconds(1)),
        ])
        bench.open([("B", 3, 0, 0), ("C", 4, 0, 0)])
        _ = bench.answer(.valid)
        bench.now += .seconds(2)
        _ = bench.handle(.noticed(notice(1)))
        #expect(bench.handle(.fetched(page([1]), channelID: 3)).questions == 1)
        let sentAt = bench.now
        // This page comes after the request.
        bench.now += .milliseconds(500)
        _ = bench.handle(.noticed(Bench.notice("C", channel: 4, after: 0, ids: [1])))
        _ = bench.handle(.fetched(page([1]), channelID: 4))
        bench.now += .milliseconds(500)
        let slow = bench.answer(.valid, sentAt: sentAt)
        #expect(slow.pushed.isEmpty && slow.questions == 1)
        let next = bench.answer(.valid)
        #expect(next.pushed == [1] && next.fetches.map(\.after) == [0])
        #expect(bench.handle(.fetched(page([1]), channelID: 3)).pushed == [1])
    }

    @Test("V5: the time in the validator's line is not part of a verdict's age")
    func waitingCall() {
        var bench = opened(.seconds(1))
        bench.now += .seconds(2)
        _ = bench.handle(.noticed(notice(1)))
        _ = bench.handle(.fetched(page([1]), channelID: 3))
        let sentAt = bench.now
        bench.now += .seconds(3)
        #expect(bench.answer(.valid, sentAt: sentAt, joinedAfter: -2_500).pushed == [1])
    }

    @Test("V5: with lifetime 0 a verdict from before the batch does not count; one request serves all")
    func joinedCallIsTooOld() {
        var bench = opened(.zero)
        _ = bench.handle(.noticed(notice(1)))
        _ = bench.handle(.fetched(page([1]), channelID: 3))
        let sentAt = bench.now
        bench.now += .milliseconds(20)
        let joined = bench.answer(.valid, sentAt: sentAt, joinedAfter: 1)
        #expect(joined.pushed.isEmpty && joined.questions == 1)
        bench.now += .milliseconds(20)
        #expect(bench.answer(.valid, sentAt: sentAt + .milliseconds(20), joinedAfter: 5).pushed == [1])
    }

    @Test("V5: a non-persistent push with lifetime 0 waits for the verdict, and is sent with it")
    func liveDataWaitsForTheWord() {
        var bench = opened(.zero)
        let live = Bench.notice("B", channel: 3, after: 0, ids: [1], persistent: false)
        _ = bench.handle(.noticed(live))
        #expect(bench.replyEntries(of: live).held == [1])
        let empty = Mss_Bus_V1_FetchReply.with { $0.upto = 1 }
        #expect(bench.handle(.fetched(empty, channelID: 3)).questions == 1)
        #expect(bench.answer(.valid).pushed == [1])
    }

    @Test("V4: after unknown a valid verdict lives to its end, then data waits and requests back off")
    func unknownIsNotInvalid() {
        var bench = opened(.seconds(10))
        bench.now += .seconds(9)
        #expect(bench.handle(.ticked).questions == 1)
        #expect(bench.answer(.unknown).sent.isEmpty)
        #expect(bench.handle(.noticed(notice(1))).pushed == [1])
        bench.now += .milliseconds(500)
        #expect(bench.handle(.ticked).questions == 0, "it backs off")
        bench.now += .milliseconds(500)
        let late = bench.handle(.noticed(notice(2)))
        #expect(late.pushed.isEmpty && late.fetches.isEmpty && late.questions == 0)
        var pauses: [Int] = []
        for _ in 0..<4 {
            var seconds = 0
            while bench.handle(.ticked).questions == 0 {
                bench.now += .seconds(1)
                seconds += 1
                _ = bench.receive { $0.ping.number = 1 }
            }
            _ = bench.answer(.unknown)
            pauses.append(seconds)
        }
        #expect(pauses == [0, 2, 4, 8])
        #expect(bench.answer(.valid).fetches.map(\.after) == [1])
    }

    @Test("V5: a verdict is renewed in the last third of the shortest life, so that data need not wait")
    func renewedInTime() {
        var bench = opened(.seconds(10))
        _ = bench.handle(.noticed(notice(1)))
        bench.now += .milliseconds(7_999)
        #expect(bench.handle(.ticked).questions == 0)
        bench.now += .milliseconds(1)
        #expect(bench.handle(.ticked).questions == 1)
    }

    @Test(
        "V6: an invalid verdict stops the very next batch, the app is told once with the reason; rebinding asks at once"
    )
    func invalidStopsTheNext() {
        var bench = opened(.seconds(600))
        #expect(bench.handle(.noticed(notice(1))).pushed == [1])
        _ = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 2, ids: [3])))
        let told = bench.handle(.invalidated(UserID("u"), digest: digest, reason: "gone"))
        #expect(told.states.map(\.validity) == [.invalid] && told.states.first?.reason == "gone")
        #expect(bench.handle(.fetched(page([2, 3]), channelID: 3)).pushed.isEmpty)
        #expect(bench.answer(.invalid).states.isEmpty, "it knows")
        let bound = bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "u"
            $0.bind.sessionID = "session"
        }
        #expect(bound.questions == 1)
    }

    @Test("V6: the end of another session does not affect this one")
    func otherSessions() {
        var bench = opened(.seconds(600))
        let context = bench.context
        #expect(
            bench.machine.handle(.invalidated(UserID("u"), digest: SessionDigest.of("other"), reason: ""), in: context)
                .isEmpty)
        #expect(bench.machine.handle(.invalidated(UserID("v"), digest: digest, reason: ""), in: context).isEmpty)
        #expect(bench.machine.handle(.invalidated(UserID("u"), digest: [], reason: ""), in: context).isEmpty)
        #expect(bench.machine.handle(.revoked(UserID("v"), digest: []), in: context).isEmpty)
        #expect(bench.machine.handle(.revoked(UserID("u"), digest: SessionDigest.of("other")), in: context).isEmpty)
        #expect(bench.machine.handle(.noticed(notice(1)), in: context).pushed == [1])
    }

    @Test(
        "V6: an invalid verdict from before the bind causes a new request, and its reply counts")
    func invalidFromBeforeTheBind() {
        var bench = Bench([Bench.configuration("B", checks: true, verdictLifetime: .seconds(600))])
        bench.open([("B", 3, 0, 0)])
        let sentAt = bench.now
        bench.now += .milliseconds(50)
        // The request joined a call that began a second before the bind.
        let joined = bench.answer(.invalid, sentAt: sentAt, joinedAfter: 1_000)
        #expect(joined.questions == 1 && joined.states.isEmpty)
        #expect(bench.answer(.valid).states.map(\.validity) == [.valid])
        #expect(bench.handle(.noticed(notice(1))).pushed == [1])
        // Until then the valid verdict does not count, because the invalid one can be newer.
        #expect(bench.answer(.invalid, joinedAfter: 1_000).questions == 1)
        #expect(bench.handle(.noticed(notice(2))).pushed.isEmpty)
        #expect(bench.answer(.valid).fetches.count == 1)
        // A call that began after the bind counts, joined or not.
        bench.now += .seconds(5)
        #expect(bench.answer(.invalid, joinedAfter: 1_000).states.map(\.validity) == [.invalid])
    }

    @Test("V6: a reply in flight when the verdict ended does not restore it; the next one may")
    func answersUnderWay() {
        var bench = opened(.seconds(10))
        bench.now += .seconds(9)
        _ = bench.handle(.ticked)
        let sentAt = bench.now
        bench.now += .milliseconds(10)
        _ = bench.handle(.invalidated(UserID("u"), digest: digest, reason: "gone"))
        bench.now += .milliseconds(10)
        let old = bench.answer(.valid, sentAt: sentAt)
        #expect(old.questions == 1 && old.states.isEmpty)
        #expect(bench.handle(.noticed(notice(1))).pushed.isEmpty)
        #expect(bench.answer(.valid).states.map(\.validity) == [.valid])
    }

    @Test("H7, I7: a revoked session gets nothing more, also of data in flight, until the next bind")
    func revoked() {
        var bench = opened(.seconds(10))
        _ = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 1, ids: [2])))
        bench.now += .seconds(9)
        _ = bench.handle(.ticked)
        let told = bench.handle(.revoked(UserID("u"), digest: SessionDigest.of("session")))
        #expect(told.states.map(\.validity) == [.invalid] && !(told.states.first?.reason.isEmpty ?? true))
        #expect(bench.handle(.fetched(page([1, 2]), channelID: 3)).pushed.isEmpty)
        bench.now += .seconds(1)
        #expect(bench.answer(.valid).isEmpty, "not even a word from later")
        bench.now += .seconds(60)
        _ = bench.receive { $0.ping.number = 1 }
        #expect(bench.handle(.ticked).questions == 0)
        let bound = bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "u"
            $0.bind.sessionID = "session"
        }
        #expect(bound.questions == 1)
        _ = bench.handle(.registered(Bench.reply([("B", 3, 2, 0)]), bindNumber: 2))
        #expect(bench.answer(.valid, bind: 2).fetches.map(\.after) == [0])
    }

    @Test("H7: a revocation whose notice was lost is found by the next registration")
    func learnedFromTheStore() {
        var bench = opened(.seconds(600))
        bench.now += .seconds(5)
        _ = bench.handle(.registrationDue)
        bench.now += .milliseconds(10)
        var reply = Bench.reply([("B", 3, 1, 0)])
        reply.revokedAgoMs = 2_000
        reply.revocationNumber = 1
        let told = bench.handle(.registered(reply, bindNumber: 1))
        #expect(told.states.map(\.validity) == [.invalid] && told.fetches.isEmpty)
        #expect(bench.handle(.noticed(notice(1))).pushed.isEmpty)
    }

    @Test("H7: a new bind accepts only a verdict from after the revocation, and otherwise requests again")
    func bindAfterARevocation() {
        var bench = Bench([Bench.configuration("B", checks: true)])
        bench.connect()
        let sentAt = bench.now
        bench.now += .milliseconds(20)
        _ = bench.answer(.valid, sentAt: sentAt, joinedAfter: 50)
        var reply = Bench.reply([("B", 3, 1, 0)])
        reply.revokedAgoMs = 60
        reply.revocationNumber = 1
        let opened = bench.handle(.registered(reply, bindNumber: 1))
        #expect(opened.fetches.isEmpty && opened.questions == 1, "the call may have begun 10 ms before it")
        #expect(bench.answer(.valid).fetches.count == 1)
        bench = Bench([Bench.configuration("B", checks: true)])
        bench.connect()
        bench.now += .milliseconds(20)
        _ = bench.answer(.valid, sentAt: bench.now - .milliseconds(20), joinedAfter: 30)
        #expect(bench.handle(.registered(reply, bindNumber: 1)).fetches.count == 1)
    }

    @Test("H7: an old revocation stays known when the database's clock steps back; a later one is new")
    func clockStepsBack() {
        var bench = Bench([Bench.configuration("B", checks: true)])
        bench.connect()
        var reply = Bench.reply([("B", 3, 0, 0)])
        (reply.revokedAgoMs, reply.revocationNumber) = (600_000, 4)
        _ = bench.handle(.registered(reply, bindNumber: 1))
        _ = bench.answer(.valid)
        bench.now += .seconds(20)
        _ = bench.handle(.registrationDue)
        reply.revokedAgoMs = 0
        let again = bench.handle(.registered(reply, bindNumber: 1))
        #expect(again.states.isEmpty && again.questions == 0)
        #expect(bench.handle(.noticed(notice(1))).pushed == [1])
        _ = bench.handle(.registrationDue)
        (reply.revokedAgoMs, reply.revocationNumber) = (3_600_000, 5)
        let told = bench.handle(.registered(reply, bindNumber: 1))
        #expect(told.states.map(\.validity) == [.invalid])
        #expect(bench.handle(.noticed(notice(2))).pushed.isEmpty)
    }

    @Test("V6: after a second invalid verdict, a verdict from between does not restore the session")
    func invalidTwice() {
        var bench = opened(.seconds(10))
        bench.now += .seconds(9)
        _ = bench.handle(.ticked)
        let sentAt = bench.now
        bench.now += .milliseconds(10)
        _ = bench.handle(.invalidated(UserID("u"), digest: SessionDigest.of("session"), reason: "gone"))
        #expect(bench.answer(.valid, sentAt: sentAt).questions == 1)
        let askedAt = bench.now
        bench.now += .milliseconds(10)
        let again = bench.handle(.invalidated(UserID("u"), digest: SessionDigest.of("session"), reason: "gone"))
        #expect(again.states.isEmpty, "the device knows")
        bench.now += .milliseconds(10)
        let between = bench.answer(.valid, sentAt: askedAt)
        #expect(between.states.isEmpty && between.questions == 1)
        #expect(bench.handle(.noticed(notice(1))).pushed.isEmpty)
        #expect(bench.answer(.valid).states.map(\.validity) == [.valid])
    }

    @Test("V5: a session that was bound before its instance had a validator is checked as soon as it has one")
    func validatorComesLater() {
        var bench = Bench([Bench.configuration("B", checks: true)])
        bench.instance.validatorURL = ""
        bench.open([("B", 3, 1, 0)])
        #expect(bench.handle(.ticked).questions == 0)
        bench.instance.validatorURL = "http://tenant"
        #expect(bench.handle(.contextChanged).questions == 0)
        #expect(bench.handle(.ticked).questions == 1)
        #expect(bench.handle(.ticked).questions == 0, "it is on its way")
        #expect(bench.answer(.valid).fetches.map(\.after) == [0])
    }

    @Test(
        "V4: without a validator, data that waits for a verdict is withdrawn",
        arguments: [false, true])
    func validatorGoesAway(isRevoked: Bool) {
        var bench = Bench([Bench.configuration("B", checks: true, verdictLifetime: .zero)])
        bench.connect()
        _ = bench.answer(.valid)
        bench.now += .milliseconds(20)
        var reply = Bench.reply([("B", 3, 1, 1)])
        if isRevoked { (reply.revokedAgoMs, reply.revocationNumber) = (20, 1) }
        _ = bench.handle(.registered(reply, bindNumber: 1))
        let asked = bench.receive {
            $0.historyRequest.requestNumber = 5
            $0.historyRequest.bizType = "B"
            $0.historyRequest.bindNumber = 1
            $0.historyRequest.count = 1
        }
        let id = asked.historyReads.first?.id ?? 0
        let read = bench.handle(.historyRead(Mss_Bus_V1_HistoryReply(), of: id))
        #expect(read.questions == 1 && read.historyPages.isEmpty)
        bench.instance.validatorURL = ""
        let answered = bench.answer(.valid, joinedAfter: 50)
        #expect(answered.historyPages.map(\.refusal) == [.notEligible])
    }

    @Test("W13, H4: with lifetime 0 the store uses the last verdict: SUCCESS until it is invalid")
    func storeOfLifetimeZero() {
        var bench = Bench([Bench.configuration("B", checks: true)])
        bench.instance.verdictLifetime = .zero
        bench.open([("B", 3, 0, 0)])
        let valid = bench.answer(.valid).verdicts
        #expect(valid.count == 1 && valid.allSatisfy { $0 > .seconds(86_400) })
        bench.now += .seconds(5)
        let background = bench.receive { $0.foreground.foreground = false }.verdicts
        #expect(background.allSatisfy { $0 > .seconds(86_400) })
        let ended = bench.handle(.invalidated(UserID("u"), digest: SessionDigest.of("session"), reason: ""))
        #expect(ended.verdicts == [.zero])
    }

    @Test("H4: while a registration is in flight, the store gets a new state with the next registration")
    func stateBesideRegistration() {
        var bench = opened(.seconds(600))
        bench.leaseEpoch = 2
        #expect(bench.handle(.registrationDue).opens == 1)
        let background = bench.receive { $0.foreground.foreground = false }
        #expect(background.opens == 0 && background.verdicts.isEmpty)
        let again = bench.handle(.registered(Bench.reply([("B", 3, 1, 0)]), bindNumber: 1))
        #expect(again.announced.map(\.isForeground) == [false])
    }

    @Test("H7: after a new lease no data is sent before the session is registered under it")
    func newLease() {
        var bench = opened(.seconds(600))
        bench.leaseEpoch = 2
        #expect(bench.handle(.noticed(notice(1))).pushed.isEmpty)
        _ = bench.handle(.registrationDue)
        #expect(bench.handle(.noticed(notice(1))).pushed.isEmpty)
        let again = bench.handle(.registered(Bench.reply([("B", 3, 1, 0)]), bindNumber: 1))
        #expect(again.fetches.count == 1)
    }

    @Test(
        "V3–V6, H7, I7: over random events no data is sent without a verdict, and no channel starves",
        arguments: 0..<150)
    func randomEvents(seed: UInt64) {
        var context = VerdictWorld(seed: seed)
        context.run(seconds: 8)
        context.heal()
        #expect(context.faults.isEmpty, "seed \(seed)")
    }
}
