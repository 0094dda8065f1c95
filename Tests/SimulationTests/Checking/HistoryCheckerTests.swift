import SyncModel
import Testing

@testable import DeliveryHistory

/// The checker of simulation and chaos runs must find each fault, and none in a correct history.
@Suite("History checker")
struct HistoryCheckerTests {
    /// One history for each seed.
    private static let histories = (UInt64(1)...100).map { GeneratedHistory(seed: $0, losesCommits: false) }

    @Test("a history that keeps every promise has no fault") func good() {
        for (index, history) in Self.histories.enumerated() {
            #expect(history.faults == [], "seed \(index + 1)")
            let other = GeneratedHistory(seed: UInt64(index + 1), losesCommits: true)
            #expect(other.faults == [], "seed \(index + 1), with lost commits")
        }
    }

    @Test("a last push, its recall and an open session are no faults in a correct history")
    func goodEnds() {
        let device = GeneratedHistory.lastDevice
        for good in Self.histories.prefix(10) {
            var told = good
            told.pushAndConfirm()
            told.recall()
            told.handOutTombstone()
            #expect(told.faults == [])
            var inTime = good
            inTime.pushLast()
            inTime.recall()
            inTime.handOutLast()
            #expect(inTime.faults == [], "it was under way")
            var closed = good
            closed.events.append(.opened(device: device))
            closed.pushLast(reach: .connected)
            closed.events.append(.closed(device: device))
            #expect(closed.faults == [], "the next session may pass over it")
            var waits = good
            waits.pushLast(reach: .anyone)
            waits.events.append(.waitsForOwner(GeneratedHistory.lastChannel))
            #expect(waits.faults == [], "the only device that may have it is another user's")
        }
    }

    @Test("a broken promise is found under its name", arguments: HistoryMutation.all)
    func bad(mutation: HistoryMutation) {
        var applied = 0
        for (index, good) in Self.histories.enumerated() {
            var history = good
            guard mutation.apply(&history) else { continue }
            applied += 1
            #expect(history.faults.contains { $0.promise == mutation.breaks }, "seed \(index + 1)")
        }
        #expect(applied > 50)
    }

    @Test("commits of the lost database may be missing, and no later ones") func lostCommits() {
        let channel = HistoryTarget(instance: "app", kind: .device, target: "device", bizType: "DEVICE")
        var checker = HistoryChecker()
        checker.observe(.invoked(push: "before", to: channel), at: .zero)
        checker.observe(.answered(push: "before", id: 1), at: .zero)
        checker.observe(.lostCommits, at: .seconds(1))
        checker.observe(.invoked(push: "after", to: channel), at: .seconds(2))
        checker.observe(.answered(push: "after", id: 2), at: .seconds(2))
        checker.compare(stored: [], at: .seconds(9))
        #expect(checker.faults.map(\.promise) == [.stored])
        checker.observe(.forgotten(push: "before"), at: .seconds(9))
        #expect(checker.faultCount == 1)
        checker.observe(.forgotten(push: "after"), at: .seconds(9))
        #expect(checker.faultCount == 2)
    }

    @Test("an app that began after a heal has its own time to catch up; one that ran all the while, or a call, has not")
    func open() {
        func channel(_ device: String) -> HistoryTarget {
            HistoryTarget(instance: "app", kind: .user, target: device, bizType: "CHAT")
        }
        var checker = HistoryChecker()
        for user in ["one", "two"] {
            checker.observe(.bound(device: "device-\(user)", instance: "app", user: user), at: .zero)
            checker.observe(.invoked(push: "push-\(user)", to: channel(user)), at: .seconds(1))
        }
        #expect(checker.open(since: .seconds(2)) == 2, "no answer")
        for (id, user) in ["one", "two"].enumerated() {
            checker.observe(.answered(push: "push-\(user)", id: Int64(id + 1)), at: .seconds(3))
        }
        #expect(checker.open(since: .seconds(2)) == 2, "not given")
        checker.observe(.crashed(device: "device-one"), at: .seconds(3))
        #expect(checker.open(since: .seconds(2)) == 1)
        #expect(checker.open(since: .seconds(4)) == 2)
        checker.observe(.bound(device: "device-one", instance: "app", user: "one"), at: .seconds(5))
        #expect(checker.open(since: .seconds(4)) == 1)
        checker.observe(.bound(device: "device-two", instance: "app", user: "one"), at: .seconds(5))
        #expect(checker.open(since: .seconds(4)) == 0)
        #expect(checker.open(since: .seconds(6)) == 2)
    }

    @Test("a forgotten push that is answered again is owed again") func answeredAnew() {
        let channel = HistoryTarget(instance: "app", kind: .device, target: "device", bizType: "DEVICE")
        var checker = HistoryChecker()
        checker.observe(.bound(device: "device", instance: "app", user: nil), at: .zero)
        checker.observe(.invoked(push: "push", to: channel), at: .zero)
        checker.observe(.answered(push: "push", id: 1), at: .zero)
        checker.observe(.lostCommits, at: .seconds(1))
        checker.observe(.forgotten(push: "push"), at: .seconds(1))
        #expect(checker.owed == 0 && checker.counts.forgottenPushes == 1)
        checker.observe(.answered(push: "push", id: 9), at: .seconds(2))
        #expect(checker.lacks("device") == ["push"] && checker.owed == 1 && checker.counts.forgottenPushes == 0)
    }

    @Test("another user's data is owed no more, and owed again when the user is back") func userSwitches() {
        let channel = HistoryTarget(instance: "app", kind: .user, target: "user", bizType: "CHAT")
        var checker = HistoryChecker()
        checker.observe(.bound(device: "device", instance: "app", user: "user"), at: .zero)
        checker.observe(.invoked(push: "push", to: channel), at: .zero)
        checker.observe(.answered(push: "push", id: 1), at: .zero)
        checker.observe(.bound(device: "device", instance: "app", user: "other"), at: .zero)
        #expect(checker.owed == 0)
        checker.observe(.bound(device: "device", instance: "app", user: "user"), at: .zero)
        #expect(checker.lagging().map(\.device) == ["device"])
    }

    @Test("an unconfirmed oplog is reported until it is confirmed") func unconfirmed() {
        let channel = HistoryTarget(instance: "app", kind: .device, target: "device", bizType: "DEVICE")
        var checker = HistoryChecker()
        checker.observe(.bound(device: "device", instance: "app", user: nil), at: .zero)
        checker.observe(.invoked(push: "push", to: channel), at: .zero)
        checker.observe(
            .given(
                HistoryHandOut(
                    device: "device", from: channel, id: 1, push: "push", payload: channel.payload(of: "push"),
                    attempt: 1)), at: .zero)
        #expect(checker.unconfirmed.map(\.ids) == [1])
        checker.observe(.confirmed(device: "device", from: channel, id: 1), at: .zero)
        #expect(checker.unconfirmed.isEmpty)
    }

    // MARK: Calls with several pushes, validity, recalls

    private static let chat = HistoryTarget(instance: "app", kind: .user, target: "ann", bizType: "CHAT")

    private static func given(_ push: String, _ id: Int64) -> HistoryEvent {
        .given(
            HistoryHandOut(
                device: "phone", from: chat, id: id, push: push, payload: chat.payload(of: push), attempt: 1))
    }

    /// A checker with Ann's phone and a push to her that begins at second 1.
    private static func checker(_ pushes: [String] = ["push"], validUntil: Duration? = nil) -> HistoryChecker {
        var checker = HistoryChecker()
        checker.observe(.bound(device: "phone", instance: "app", user: "ann"), at: .zero)
        for push in pushes { checker.observe(.invoked(push: push, to: chat, validUntil: validUntil), at: .seconds(1)) }
        return checker
    }

    @Test(
        "H6: ids rise in the order of a call, whichever is answered first",
        arguments: [["one", "two"], ["two", "one"]])
    func orderInCall(answered: [String]) {
        for isRight in [true, false] {
            var checker = Self.checker(["one", "two"])
            checker.observe(.inOneCall(pushes: ["one", "two"]), at: .seconds(1))
            for push in answered {
                checker.observe(.answered(push: push, id: (push == "one") == isRight ? 1 : 2), at: .seconds(2))
            }
            #expect(checker.faults.map(\.promise) == (isRight ? [] : [.ordered]))
        }
    }

    @Test("D11: a push is owed while it is valid, and must not come much later")
    func validity() {
        var checker = Self.checker(validUntil: .seconds(60))
        checker.observe(.answered(push: "push", id: 1), at: .seconds(2))
        #expect(checker.open(since: .seconds(30)) == 1)
        var late = checker
        checker.expire(at: .seconds(60))
        #expect(checker.owed == 0)
        checker.observe(Self.given("push", 1), at: .seconds(70))
        #expect(checker.faultCount == 0)
        late.observe(Self.given("push", 1), at: .seconds(73))
        #expect(late.faults.map(\.promise) == [.attempted])
    }

    @Test("D11: while the clock that decides is wrong a push may end early or late")
    func wrongClock() {
        var checker = Self.checker(validUntil: .seconds(60))
        checker.observe(.answered(push: "push", id: 1), at: .seconds(2))
        checker.observe(.databaseClock(isRight: false), at: .seconds(3))
        #expect(checker.owed == 0)
        checker.observe(.databaseClock(isRight: true), at: .seconds(4))
        checker.observe(Self.given("push", 1), at: .seconds(90))
        #expect(checker.faultCount == 0)
    }

    @Test("D11: a push that has ended may come while the clock that decides is set back, and not afterwards")
    func clockSetBack() {
        var checker = Self.checker(validUntil: .seconds(60))
        checker.observe(.answered(push: "push", id: 1), at: .seconds(2))
        checker.expire(at: .seconds(70))
        checker.observe(.databaseClock(isRight: false), at: .seconds(80))
        var late = checker
        checker.observe(Self.given("push", 1), at: .seconds(90))
        #expect(checker.faultCount == 0)
        late.observe(.databaseClock(isRight: true), at: .seconds(100))
        late.observe(Self.given("push", 1), at: .seconds(110))
        #expect(late.faults.map(\.promise) == [.attempted])
    }

    @Test("H7: a recalled push is not owed, and must not come to an app that ran all the while")
    func recalls() {
        var checker = Self.checker()
        checker.observe(.answered(push: "push", id: 1), at: .seconds(2))
        checker.observe(.recallBegan(push: "push"), at: .seconds(3))
        #expect(checker.owed == 0)
        checker.observe(.recalled(push: "push"), at: .seconds(4))
        #expect(checker.owed == 0)
        var late = checker
        checker.observe(Self.given("push", 1), at: .seconds(34))
        #expect(checker.faultCount == 0)
        late.observe(Self.given("push", 1), at: .seconds(35))
        #expect(late.faults.map(\.promise) == [.recalled])
    }

    @Test("H7: an app that has confirmed a recalled push gets the tombstone, in order")
    func tombstones() {
        var checker = Self.checker(["push", "other"])
        checker.observe(.answered(push: "push", id: 1), at: .seconds(2))
        checker.observe(.answered(push: "other", id: 2), at: .seconds(2))
        checker.observe(Self.given("push", 1), at: .seconds(3))
        checker.observe(.confirmed(device: "phone", from: Self.chat, id: 1), at: .seconds(3))
        checker.observe(Self.given("other", 2), at: .seconds(3))
        checker.observe(.recallBegan(push: "push"), at: .seconds(4))
        checker.observe(.recalled(push: "push"), at: .seconds(4))
        #expect(checker.owed == 1)
        var wrong = checker
        checker.observe(.tombstone(device: "phone", from: Self.chat, id: 3, recalls: 1), at: .seconds(5))
        #expect(checker.owed == 0 && checker.faultCount == 0)
        wrong.observe(.tombstone(device: "phone", from: Self.chat, id: 3, recalls: 2), at: .seconds(5))
        #expect(wrong.faults.map(\.promise) == [.attempted], "it was not recalled")
    }

    @Test("H7: a client without a store is owed the tombstone when the service has recorded the oplog")
    func recallOfUnrecorded() {
        for isOnRecord in [false, true] {
            var checker = Self.checker(["push"])
            checker.observe(.answered(push: "push", id: 1), at: .seconds(2))
            checker.observe(Self.given("push", 1), at: .seconds(3))
            checker.observe(.confirmed(device: "phone", from: Self.chat, id: 1), at: .seconds(3))
            checker.observe(.recallBegan(push: "push"), at: .seconds(4))
            if !isOnRecord { checker.observe(.notOnRecord(push: "push", device: "phone"), at: .seconds(4)) }
            checker.observe(.recalled(push: "push"), at: .seconds(4))
            #expect(checker.owed == (isOnRecord ? 1 : 0))
        }
    }
}
