import SyncModel
import Testing

@testable import DeliveryHistory

/// The checker that simulation and chaos runs trust finds what is wrong, and nothing where nothing is.
@Suite("History checker")
struct HistoryCheckerTests {
    /// By seed.
    private static let histories = (UInt64(1)...100).map { GeneratedHistory(seed: $0, losesCommits: false) }

    @Test("a history that keeps every promise has no fault") func good() {
        for (index, history) in Self.histories.enumerated() {
            #expect(history.faults == [], "seed \(index + 1)")
            let other = GeneratedHistory(seed: UInt64(index + 1), losesCommits: true)
            #expect(other.faults == [], "seed \(index + 1), with lost commits")
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

    @Test("what the lost database had may be gone, and nothing that came after it") func lostCommits() {
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

    @Test("a push that was forgotten and is answered anew is owed anew") func answeredAnew() {
        let channel = HistoryTarget(instance: "app", kind: .device, target: "device", bizType: "DEVICE")
        var checker = HistoryChecker()
        checker.observe(.bound(device: "device", instance: "app", user: nil), at: .zero)
        checker.observe(.invoked(push: "push", to: channel), at: .zero)
        checker.observe(.answered(push: "push", id: 1), at: .zero)
        checker.observe(.lostCommits, at: .seconds(1))
        checker.observe(.forgotten(push: "push"), at: .seconds(1))
        #expect(checker.owed == 0 && checker.forgottenPushes == 1)
        checker.observe(.answered(push: "push", id: 9), at: .seconds(2))
        #expect(checker.lacks("device") == ["push"] && checker.owed == 1 && checker.forgottenPushes == 0)
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
        #expect(checker.lagging.map(\.device) == ["device"])
    }

    @Test("what an app has not confirmed is told until it has") func unconfirmed() {
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
}
