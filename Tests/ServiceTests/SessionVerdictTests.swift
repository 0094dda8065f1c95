import BusMessages
import Credentials
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

private typealias Bench = SessionBench

@Suite("What a session does with the tenant's word")
struct SessionVerdictTests {
    private let digest = SessionDigest.of("session")

    /// A session with channel 3 (Sync ID B), opened, its first word said.
    private func opened(_ lifetime: Duration?, head: Int64 = 0, verdict: Mss_Bus_V1_Verdict = .valid) -> SessionBench {
        var bench = Bench([Bench.configuration("B", checks: true, verdictLifetime: lifetime)])
        bench.open([("B", 3, head, head)])
        _ = bench.answer(verdict)
        return bench
    }

    private func notice(_ id: Int64) -> ChannelNotice { Bench.notice("B", channel: 3, after: id - 1, ids: [id]) }
    private func page(_ ids: [Int64]) -> Mss_Bus_V1_FetchReply { Bench.page(after: (ids.first ?? 1) - 1, ids: ids) }

    @Test("V5, I7: a verdict's age counts from the earliest instant at which the tenant can have been asked")
    func ageIsNeverUnderestimated() {
        var bench = opened(.seconds(1), verdict: .unknown)
        bench.now += .seconds(2)
        let questions = bench.machine.ticked(in: bench.world).questions
        #expect(questions == 1)
        let sentAt = bench.now
        bench.now += .milliseconds(300)
        // The question joined a call that was 600 ms under way: so long before it the tenant may have been asked.
        _ = bench.answer(.valid, sentAt: sentAt, joinedAfter: 600)
        bench.now = sentAt + .milliseconds(399)
        #expect(bench.machine.noticed(notice(1), in: bench.world).pushed == [1])
        bench.now = sentAt + .milliseconds(400)
        #expect(bench.machine.noticed(notice(2), in: bench.world).pushed.isEmpty)
    }

    @Test("V5: with the lifetime 0 each batch waits for a question of its own, asked after it was there")
    func askedBeforeEveryBatch() {
        var bench = opened(.zero)
        let told = bench.machine.noticed(notice(1), in: bench.world)
        #expect(told.pushed.isEmpty && told.fetches.count == 1 && told.questions == 0)
        let read = bench.machine.fetched(page([1]), channelID: 3, in: bench.world)
        #expect(read.pushed.isEmpty && read.questions == 1)
        let sentAt = bench.now
        bench.now += .milliseconds(20)
        let more = bench.machine.noticed(notice(2), in: bench.world)
        #expect(more.questions == 0, "the question on its way is not restarted")
        let first = bench.answer(.valid, sentAt: sentAt)
        #expect(first.pushed == [1] && first.fetches.map(\.after) == [1])
        let second = bench.machine.fetched(page([2]), channelID: 3, in: bench.world)
        #expect(second.pushed.isEmpty && second.questions == 1, "the word of the first batch is used up")
        #expect(bench.answer(.invalid).pushed.isEmpty)
    }

    @Test("V5: with the lifetime 0 a word from before the batch does not count, and the next question serves all")
    func joinedCallIsTooOld() {
        var bench = opened(.zero)
        _ = bench.machine.noticed(notice(1), in: bench.world)
        _ = bench.machine.fetched(page([1]), channelID: 3, in: bench.world)
        let sentAt = bench.now
        bench.now += .milliseconds(20)
        let joined = bench.answer(.valid, sentAt: sentAt, joinedAfter: 1)
        #expect(joined.pushed.isEmpty && joined.questions == 1)
        bench.now += .milliseconds(20)
        #expect(bench.answer(.valid, sentAt: sentAt + .milliseconds(20), joinedAfter: 5).pushed == [1])
    }

    @Test("V5: non-persistent data with the lifetime 0 is kept until the answer, and goes out with it")
    func liveDataWaitsForTheWord() {
        var bench = opened(.zero)
        let live = Bench.notice("B", channel: 3, after: 0, ids: [1], persistent: false)
        _ = bench.machine.noticed(live, in: bench.world)
        #expect(bench.machine.taken(of: live, in: bench.world).held == [1])
        let empty = Mss_Bus_V1_FetchReply.with { $0.upto = 1 }
        #expect(bench.machine.fetched(empty, channelID: 3, in: bench.world).questions == 1)
        #expect(bench.answer(.valid).pushed == [1])
    }

    @Test("V4: unknown leaves a valid verdict its life, then data waits; the tenant is asked with back-off")
    func unknownIsNotInvalid() {
        var bench = opened(.seconds(10))
        bench.now += .seconds(9)
        #expect(bench.machine.ticked(in: bench.world).questions == 1)
        #expect(bench.answer(.unknown).sent.isEmpty)
        #expect(bench.machine.noticed(notice(1), in: bench.world).pushed == [1])
        bench.now += .milliseconds(500)
        #expect(bench.machine.ticked(in: bench.world).questions == 0, "it backs off")
        bench.now += .milliseconds(500)
        let late = bench.machine.noticed(notice(2), in: bench.world)
        #expect(late.pushed.isEmpty && late.fetches.isEmpty && late.questions == 0)
        var pauses: [Int] = []
        for _ in 0..<4 {
            var seconds = 0
            while bench.machine.ticked(in: bench.world).questions == 0 {
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
        _ = bench.machine.noticed(notice(1), in: bench.world)
        bench.now += .milliseconds(7_999)
        #expect(bench.machine.ticked(in: bench.world).questions == 0)
        bench.now += .milliseconds(1)
        #expect(bench.machine.ticked(in: bench.world).questions == 1)
    }

    @Test(
        "V6: an invalid verdict stops the very next batch, the app is told once with the reason; rebinding asks at once"
    )
    func invalidStopsTheNext() {
        var bench = opened(.seconds(600))
        #expect(bench.machine.noticed(notice(1), in: bench.world).pushed == [1])
        _ = bench.machine.noticed(Bench.notice("B", channel: 3, after: 2, ids: [3]), in: bench.world)
        let told = bench.machine.invalidated(UserID("u"), digest: digest, reason: "gone", in: bench.world)
        #expect(told.states.map(\.validity) == [.invalid] && told.states.first?.reason == "gone")
        #expect(bench.machine.fetched(page([2, 3]), channelID: 3, in: bench.world).pushed.isEmpty)
        #expect(bench.answer(.invalid).states.isEmpty, "it knows")
        let bound = bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "u"
            $0.bind.sessionID = "session"
        }
        #expect(bound.questions == 1)
    }

    @Test("V6: another session's end is none of this one's")
    func otherSessions() {
        var bench = opened(.seconds(600))
        let world = bench.world
        #expect(
            bench.machine.invalidated(UserID("u"), digest: SessionDigest.of("other"), reason: "", in: world).isEmpty)
        #expect(bench.machine.invalidated(UserID("v"), digest: digest, reason: "", in: world).isEmpty)
        #expect(bench.machine.invalidated(UserID("u"), digest: [], reason: "", in: world).isEmpty)
        #expect(bench.machine.revoked(UserID("v"), digest: [], in: world).isEmpty)
        #expect(bench.machine.revoked(UserID("u"), digest: SessionDigest.of("other"), in: world).isEmpty)
        #expect(bench.machine.noticed(notice(1), in: world).pushed == [1])
    }

    @Test(
        "V6: that the session was invalid before the bind ends nothing: the tenant is asked anew, and its word counts")
    func invalidFromBeforeTheBind() {
        var bench = Bench([Bench.configuration("B", checks: true, verdictLifetime: .seconds(600))])
        bench.open([("B", 3, 0, 0)])
        let sentAt = bench.now
        bench.now += .milliseconds(50)
        // It joined a call that began a second before the bind.
        let joined = bench.answer(.invalid, sentAt: sentAt, joinedAfter: 1_000)
        #expect(joined.questions == 1 && joined.states.isEmpty)
        #expect(bench.answer(.valid).states.map(\.validity) == [.valid])
        #expect(bench.machine.noticed(notice(1), in: bench.world).pushed == [1])
        // Meanwhile the word that stood does not count: nobody knows which of the two is newer.
        #expect(bench.answer(.invalid, joinedAfter: 1_000).questions == 1)
        #expect(bench.machine.noticed(notice(2), in: bench.world).pushed.isEmpty)
        #expect(bench.answer(.valid).fetches.count == 1)
        // What began after the bind counts, joined or not.
        bench.now += .seconds(5)
        #expect(bench.answer(.invalid, joinedAfter: 1_000).states.map(\.validity) == [.invalid])
    }

    @Test("V6: an answer that was on its way when the verdict ended does not bring it back; the next may")
    func answersUnderWay() {
        var bench = opened(.seconds(10))
        bench.now += .seconds(9)
        _ = bench.machine.ticked(in: bench.world)
        let sentAt = bench.now
        bench.now += .milliseconds(10)
        _ = bench.machine.invalidated(UserID("u"), digest: digest, reason: "gone", in: bench.world)
        bench.now += .milliseconds(10)
        let old = bench.answer(.valid, sentAt: sentAt)
        #expect(old.questions == 1 && old.states.isEmpty)
        #expect(bench.machine.noticed(notice(1), in: bench.world).pushed.isEmpty)
        #expect(bench.answer(.valid).states.map(\.validity) == [.valid])
    }

    @Test("H7, I7: a revoked session gets nothing more, whatever is under way, until it is bound anew")
    func revoked() {
        var bench = opened(.seconds(10))
        _ = bench.machine.noticed(Bench.notice("B", channel: 3, after: 1, ids: [2]), in: bench.world)
        bench.now += .seconds(9)
        _ = bench.machine.ticked(in: bench.world)
        let told = bench.machine.revoked(UserID("u"), digest: SessionDigest.of("session"), in: bench.world)
        #expect(told.states.map(\.validity) == [.invalid] && !(told.states.first?.reason.isEmpty ?? true))
        #expect(bench.machine.fetched(page([1, 2]), channelID: 3, in: bench.world).pushed.isEmpty)
        bench.now += .seconds(1)
        #expect(bench.answer(.valid).isEmpty, "not even a word from later")
        bench.now += .seconds(60)
        _ = bench.receive { $0.ping.number = 1 }
        #expect(bench.machine.ticked(in: bench.world).questions == 0)
        let bound = bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "u"
            $0.bind.sessionID = "session"
        }
        #expect(bound.questions == 1)
        _ = bench.machine.registered(Bench.reply([("B", 3, 2, 0)]), bindNumber: 2, in: bench.world)
        #expect(bench.answer(.valid, bind: 2).fetches.map(\.after) == [0])
    }

    @Test("H7: a revocation that the notice did not bring is learned with the next announcement")
    func learnedFromTheStore() {
        var bench = opened(.seconds(600))
        bench.now += .seconds(5)
        _ = bench.machine.announce(in: bench.world)
        bench.now += .milliseconds(10)
        var reply = Bench.reply([("B", 3, 1, 0)])
        reply.revokedAgoMs = 2_000
        reply.revocationNumber = 1
        let told = bench.machine.registered(reply, bindNumber: 1, in: bench.world)
        #expect(told.states.map(\.validity) == [.invalid] && told.fetches.isEmpty)
        #expect(bench.machine.noticed(notice(1), in: bench.world).pushed.isEmpty)
    }

    @Test("H7: a new bind goes by what the tenant said after the revocation, and asks again if that was before")
    func bindAfterARevocation() {
        var bench = Bench([Bench.configuration("B", checks: true)])
        bench.connect()
        let sentAt = bench.now
        bench.now += .milliseconds(20)
        _ = bench.answer(.valid, sentAt: sentAt, joinedAfter: 50)
        var reply = Bench.reply([("B", 3, 1, 0)])
        reply.revokedAgoMs = 60
        reply.revocationNumber = 1
        let opened = bench.machine.registered(reply, bindNumber: 1, in: bench.world)
        #expect(opened.fetches.isEmpty && opened.questions == 1, "the call may have begun 10 ms before it")
        #expect(bench.answer(.valid).fetches.count == 1)
        bench = Bench([Bench.configuration("B", checks: true)])
        bench.connect()
        bench.now += .milliseconds(20)
        _ = bench.answer(.valid, sentAt: bench.now - .milliseconds(20), joinedAfter: 30)
        #expect(bench.machine.registered(reply, bindNumber: 1, in: bench.world).fetches.count == 1)
    }

    @Test("H7: an old revocation is no news when the database's clock steps back; a later one is, whatever its clock")
    func clockStepsBack() {
        var bench = Bench([Bench.configuration("B", checks: true)])
        bench.connect()
        var reply = Bench.reply([("B", 3, 0, 0)])
        (reply.revokedAgoMs, reply.revocationNumber) = (600_000, 4)
        _ = bench.machine.registered(reply, bindNumber: 1, in: bench.world)
        _ = bench.answer(.valid)
        bench.now += .seconds(20)
        _ = bench.machine.announce(in: bench.world)
        reply.revokedAgoMs = 0
        let again = bench.machine.registered(reply, bindNumber: 1, in: bench.world)
        #expect(again.states.isEmpty && again.questions == 0)
        #expect(bench.machine.noticed(notice(1), in: bench.world).pushed == [1])
        _ = bench.machine.announce(in: bench.world)
        (reply.revokedAgoMs, reply.revocationNumber) = (3_600_000, 5)
        let told = bench.machine.registered(reply, bindNumber: 1, in: bench.world)
        #expect(told.states.map(\.validity) == [.invalid])
        #expect(bench.machine.noticed(notice(2), in: bench.world).pushed.isEmpty)
    }

    @Test("V6: said invalid again, a session does not come back by a word from between")
    func invalidTwice() {
        var bench = opened(.seconds(10))
        bench.now += .seconds(9)
        _ = bench.machine.ticked(in: bench.world)
        let sentAt = bench.now
        bench.now += .milliseconds(10)
        _ = bench.machine.invalidated(UserID("u"), digest: SessionDigest.of("session"), reason: "gone", in: bench.world)
        #expect(bench.answer(.valid, sentAt: sentAt).questions == 1)
        let askedAt = bench.now
        bench.now += .milliseconds(10)
        let again = bench.machine.invalidated(
            UserID("u"), digest: SessionDigest.of("session"), reason: "gone", in: bench.world)
        #expect(again.states.isEmpty, "the device knows")
        bench.now += .milliseconds(10)
        let between = bench.answer(.valid, sentAt: askedAt)
        #expect(between.states.isEmpty && between.questions == 1)
        #expect(bench.machine.noticed(notice(1), in: bench.world).pushed.isEmpty)
        #expect(bench.answer(.valid).states.map(\.validity) == [.valid])
    }

    @Test("V5: a session bound before its instance had anybody to ask is asked about once it has")
    func validatorComesLater() {
        var bench = Bench([Bench.configuration("B", checks: true)])
        bench.instance.validatorURL = ""
        bench.open([("B", 3, 1, 0)])
        #expect(bench.machine.ticked(in: bench.world).questions == 0)
        bench.instance.validatorURL = "http://tenant"
        #expect(bench.machine.ticked(in: bench.world).questions == 1)
        #expect(bench.machine.ticked(in: bench.world).questions == 0, "it is on its way")
        #expect(bench.answer(.valid).fetches.map(\.after) == [0])
    }

    @Test(
        "V4: when nobody is left to be asked, what waits for a word goes back: it was older, or from before a revocation",
        arguments: [false, true])
    func validatorGoesAway(isRevoked: Bool) {
        var bench = Bench([Bench.configuration("B", checks: true, verdictLifetime: .zero)])
        bench.connect()
        _ = bench.answer(.valid)
        bench.now += .milliseconds(20)
        var reply = Bench.reply([("B", 3, 1, 1)])
        if isRevoked { (reply.revokedAgoMs, reply.revocationNumber) = (20, 1) }
        _ = bench.machine.registered(reply, bindNumber: 1, in: bench.world)
        let asked = bench.receive {
            $0.historyRequest.requestNumber = 5
            $0.historyRequest.bizType = "B"
            $0.historyRequest.bindNumber = 1
            $0.historyRequest.count = 1
        }
        let id = asked.historyReads.first?.id ?? 0
        let read = bench.machine.historyRead(Mss_Bus_V1_HistoryReply(), of: id, in: bench.world)
        #expect(read.questions == 1 && read.historyPages.isEmpty)
        bench.instance.validatorURL = ""
        let answered = bench.answer(.valid, joinedAfter: 50)
        #expect(answered.historyPages.map(\.refusal) == [.notEligible])
    }

    @Test("spec §1, H4: with the lifetime 0 the last word counts: the store may say SUCCESS until it is no")
    func storeOfLifetimeZero() {
        var bench = Bench([Bench.configuration("B", checks: true)])
        bench.instance.verdictLifetime = .zero
        bench.open([("B", 3, 0, 0)])
        let valid = bench.answer(.valid).verdicts
        #expect(valid.count == 1 && valid.allSatisfy { $0 > .seconds(86_400) })
        bench.now += .seconds(5)
        let background = bench.receive { $0.foreground.foreground = false }.verdicts
        #expect(background.allSatisfy { $0 > .seconds(86_400) })
        let ended = bench.machine.invalidated(
            UserID("u"), digest: SessionDigest.of("session"), reason: "", in: bench.world)
        #expect(ended.verdicts == [.zero])
    }

    @Test("H7: after a new lease nothing goes out before the session is on record under it")
    func newLease() {
        var bench = opened(.seconds(600))
        bench.leaseEpoch = 2
        #expect(bench.machine.noticed(notice(1), in: bench.world).pushed.isEmpty)
        _ = bench.machine.announce(in: bench.world)
        #expect(bench.machine.noticed(notice(1), in: bench.world).pushed.isEmpty)
        let again = bench.machine.registered(Bench.reply([("B", 3, 1, 0)]), bindNumber: 1, in: bench.world)
        #expect(again.fetches.count == 1)
    }

    @Test(
        "V3–V6, H7, I7: over random events nothing goes out without a word for it, and nothing starves",
        arguments: 0..<150)
    func randomEvents(seed: UInt64) {
        var world = VerdictWorld(seed: seed)
        world.run(seconds: 8)
        world.heal()
        #expect(world.faults.isEmpty, "seed \(seed)")
    }
}
