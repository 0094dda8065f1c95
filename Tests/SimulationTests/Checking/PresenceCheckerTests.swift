import SyncModel
import Testing

@testable import DeliveryHistory

/// The checker compares answers with the sessions that clients held open, and does not judge uncertain cases.
@Suite("Presence checker")
struct PresenceCheckerTests {
    private static let channel = HistoryTarget(instance: "app", kind: .user, target: "ann", bizType: "CHAT")

    private static func second(_ seconds: Int) -> Duration { .seconds(seconds) }

    /// A checker with one device of Ann. Its session opens at second 1.
    private static func checker() -> PresenceChecker {
        var checker = PresenceChecker()
        checker.observe(.arrived(device: "phone", instance: "app", user: "ann"), at: second(0))
        checker.observe(.opened(device: "phone"), at: second(1))
        return checker
    }

    private static func call(
        _ checker: inout PresenceChecker, at begin: Int, answered end: Int, as answer: PresenceAnswer,
        isShared: Bool = false, meanwhile: PresenceEvent? = nil
    ) {
        checker.observe(.called(push: "push", to: channel, isShared: isShared), at: second(begin))
        if let meanwhile { checker.observe(meanwhile, at: second(begin)) }
        checker.observe(.answered(push: "push", as: answer), at: second(end))
    }

    @Test("I9: NOT_ONLINE over an open session is a fault")
    func notOnline() {
        var checker = Self.checker()
        Self.call(&checker, at: 20, answered: 21, as: .notOnline)
        var late = checker
        checker.check(at: Self.second(24))
        #expect(checker.faultCount == 1 && checker.faults.first?.promise == .honest)
        late.observe(.lost(device: "phone"), at: Self.second(23))
        late.check(at: Self.second(90))
        #expect(late.faultCount == 0, "the client noticed the end late")
    }

    @Test(
        "I9: NOT_ONLINE is correct for a session that just opened, ends, or may be lost by a fault",
        arguments: [
            (at: 10, meanwhile: nil as PresenceEvent?), (at: 20, meanwhile: .lost(device: "phone")),
            (at: 20, meanwhile: .left(device: "phone")), (at: 20, meanwhile: .disturbed),
        ])
    func rightNotOnline(at begin: Int, meanwhile: PresenceEvent?) {
        var checker = Self.checker()
        Self.call(&checker, at: begin, answered: begin + 1, as: .notOnline, meanwhile: meanwhile)
        checker.check(at: Self.second(90))
        #expect(checker.faultCount == 0)
    }

    @Test("after a fault sessions are certain once they have settled")
    func settling() {
        var checker = Self.checker()
        checker.observe(.disturbed, at: Self.second(20))
        checker.observe(.healed, at: Self.second(30))
        Self.call(&checker, at: 39, answered: 39, as: .notOnline)
        checker.check(at: Self.second(43))
        #expect(checker.faultCount == 0)
        Self.call(&checker, at: 44, answered: 44, as: .notOnline)
        checker.check(at: Self.second(47))
        #expect(checker.faultCount == 1)
    }

    @Test("H4: SUCCESS is wrong when the only device has been away, unless a stranger may be there")
    func success() {
        var checker = Self.checker()
        checker.observe(.left(device: "phone"), at: Self.second(20))
        Self.call(&checker, at: 25, answered: 25, as: .sent)
        Self.call(&checker, at: 40, answered: 40, as: .sent, isShared: true)
        #expect(checker.faultCount == 0)
        Self.call(&checker, at: 40, answered: 40, as: .sent)
        #expect(checker.faultCount == 1)
    }

    @Test("H4: a non-persistent push must reach each device; SUCCESS is correct while one is connected")
    func twoDevices() {
        var checker = Self.checker()
        checker.observe(.arrived(device: "tablet", instance: "app", user: "ann"), at: Self.second(1))
        checker.observe(.opened(device: "tablet"), at: Self.second(1))
        var live = checker
        Self.call(
            &live, at: 20, answered: 20, as: .live, meanwhile: .given(push: "push", device: "phone"))
        live.check(at: Self.second(90))
        #expect(live.faultCount == 1 && live.faults.first?.text.contains("tablet") == true)
        checker.observe(.left(device: "phone"), at: Self.second(20))
        Self.call(&checker, at: 40, answered: 40, as: .sent)
        #expect(checker.faultCount == 0 && checker.judged == 1)
    }

    @Test("H4: a delivered non-persistent push must reach every session that stays open")
    func live() {
        var checker = Self.checker()
        Self.call(&checker, at: 20, answered: 20, as: .live)
        checker.check(at: Self.second(49))
        #expect(checker.faultCount == 0)
        checker.check(at: Self.second(50))
        #expect(checker.faultCount == 1)
    }

    @Test(
        "H4: a non-persistent push is not missed when it arrived at any time, or when the session ended",
        arguments: [
            PresenceEvent.given(push: "push", device: "phone"), .lost(device: "phone"), .left(device: "phone"),
            .disturbed,
        ])
    func liveInTime(event: PresenceEvent) {
        var early = Self.checker()
        Self.call(&early, at: 20, answered: 20, as: .live, meanwhile: event)
        early.check(at: Self.second(90))
        #expect(early.faultCount == 0)
        var late = Self.checker()
        Self.call(&late, at: 20, answered: 20, as: .live)
        late.observe(event, at: Self.second(25))
        late.check(at: Self.second(90))
        #expect(late.faultCount == 0)
    }
}

/// Single-device data belongs to the device on which the app last signed in.
@Suite("Owner checker")
struct OwnerCheckerTests {
    private static func second(_ seconds: Int) -> Duration { .seconds(seconds) }

    /// A checker in which the old phone's ownership is certain and the new phone signs in at second 10.
    private static func checker(settles: Bool = true) -> OwnerChecker {
        var checker = OwnerChecker()
        checker.observe(.signedIn(device: "old", user: "ann"), at: second(0))
        checker.observe(.settled(device: "old"), at: second(1))
        checker.observe(.signedIn(device: "new", user: "ann"), at: second(10))
        if settles { checker.observe(.settled(device: "new"), at: second(11)) }
        return checker
    }

    @Test("D8: pushes after the last sign-in belong to the new device, also while the old one reconnects")
    func rightful() {
        let checker = Self.checker()
        #expect(checker.rightful(of: "ann", insteadOf: "old", forPushBegunAt: Self.second(12)) == "new")
        #expect(checker.rightful(of: "ann", insteadOf: "new", forPushBegunAt: Self.second(12)) == nil)
        #expect(checker.rightful(of: "ann", insteadOf: "old", forPushBegunAt: Self.second(10)) == nil)
        #expect(
            Self.checker(settles: false).rightful(of: "ann", insteadOf: "old", forPushBegunAt: Self.second(12)) == nil)
    }

    @Test("nothing is judged while another sign-in may still take effect")
    func underWay() {
        var checker = Self.checker()
        checker.observe(.signedIn(device: "third", user: "ann"), at: Self.second(5))
        #expect(checker.rightful(of: "ann", insteadOf: "old", forPushBegunAt: Self.second(12)) == nil)
        #expect(checker.isServable("ann", since: Self.second(20)), "each that may own the data is there")
        checker.observe(.signedIn(device: "third", user: "bob"), at: Self.second(13))
        #expect(!checker.isServable("ann", since: Self.second(20)), "its old frame may come late")
        #expect(checker.rightful(of: "ann", insteadOf: "old", forPushBegunAt: Self.second(12)) == nil)
        checker.observe(.settled(device: "third"), at: Self.second(14))
        #expect(!checker.isServable("ann", since: Self.second(20)), "it may have come after that of the new device")
        #expect(checker.rightful(of: "ann", insteadOf: "old", forPushBegunAt: Self.second(12)) == nil)
        checker.observe(.signedIn(device: "new", user: "ann"), at: Self.second(30))
        checker.observe(.settled(device: "new"), at: Self.second(31))
        #expect(checker.isServable("ann", since: Self.second(32)))
        #expect(checker.rightful(of: "ann", insteadOf: "old", forPushBegunAt: Self.second(32)) == "new")
    }

    @Test("a user whose owner has another user now has no present owner, until the app signs in again")
    func departure() {
        var checker = Self.checker()
        checker.observe(.signedIn(device: "new", user: "bob"), at: Self.second(20))
        checker.observe(.settled(device: "new"), at: Self.second(21))
        #expect(!checker.isServable("ann", since: Self.second(30)))
        #expect(checker.rightful(of: "ann", insteadOf: "new", forPushBegunAt: Self.second(25)) == nil)
        checker.observe(.signedIn(device: "old", user: "ann"), at: Self.second(31))
        #expect(checker.isServable("ann", since: Self.second(32)))
    }

    @Test("a device that has another user now may have become the owner as late as its sign-in was complete")
    func lateDeparture() {
        var checker = OwnerChecker()
        checker.observe(.signedIn(device: "old", user: "ann"), at: Self.second(0))
        checker.observe(.signedIn(device: "new", user: "ann"), at: Self.second(1))
        checker.observe(.settled(device: "old"), at: Self.second(10))
        checker.observe(.settled(device: "new"), at: Self.second(11))
        #expect(checker.isServable("ann", since: Self.second(12)), "each that may own the data is there")
        checker.observe(.signedIn(device: "old", user: "bob"), at: Self.second(20))
        checker.observe(.settled(device: "old"), at: Self.second(21))
        #expect(!checker.isServable("ann", since: Self.second(30)))
        checker.observe(.signedIn(device: "new", user: "ann"), at: Self.second(31))
        #expect(checker.isServable("ann", since: Self.second(32)))
    }

    @Test("data must be sent to a present owner, certain or not, and not to an absent one")
    func servable() {
        var checker = Self.checker(settles: false)
        #expect(checker.isServable("ann", since: Self.second(20)) && !checker.isServable("ann", since: Self.second(9)))
        #expect(!checker.isServable("bob", since: Self.second(20)))
        checker.observe(.died(device: "new"), at: Self.second(15))
        #expect(!checker.isServable("ann", since: Self.second(20)))
    }
}
