import BackendCalls
import BusMessages
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Counts pushes of a day over all ingests: this process takes some of a caller's from the store and spends them.
///
/// The store never gives out more than the day has. What this process has taken and not spent when it ends is lost.
actor PushQuotas {
    /// Takes pushes from the store.
    typealias Take =
        @Sendable (_ fill: @Sendable (inout Mss_Bus_V1_TakeQuota) -> Void) async throws(BusError) ->
        Mss_Bus_V1_QuotaReply

    /// Whether pushes may be made.
    enum Outcome: Sendable {
        /// They are paid for; what is not stored can be given back.
        case granted(Grant)
        /// The answer says why, and when to come again.
        case refused(APIAnswer)
    }

    /// Pushes paid for, and of which day; nil for a caller without a limit.
    typealias Grant = (caller: APICaller, resetsAt: WallTime)?

    /// A caller's pushes of one day, as this process knows them.
    private struct Pot {
        var pushesPerDay: Int
        /// Taken and not spent.
        var left = 0
        /// What the store had left when it was last asked.
        var remaining: Int
        /// Names the store's day; what this process's clock says it is does not matter.
        var resetsAt: WallTime
        /// When the day is over, by this process's own steady clock; nil: nothing is known of any day.
        var endsAt: ContinuousClock.Instant?
        var isTaking = false
        /// The store may have given out what never came here; nothing is taken in advance then, or each such taking
        /// costs the day more than the pushes it was for.
        var isUnanswered = false
        /// Told whether the store answered.
        var waiting: [CheckedContinuation<Bool, Never>] = []
    }

    /// Pushes that are taken at once at the most.
    private static let largestPart = 1_000
    /// Of what is left this part is taken, so that other processes have theirs until the end.
    private static let partOfRest = 64
    /// Callers that are remembered; those of days that are over are forgotten beyond it.
    private static let maximumPots = 10_000
    private static let storeAway = APIAnswer.unavailable(
        "The store did not answer; nothing was stored. Repeat the call.")

    private let take: Take
    private let now: @Sendable () -> WallTime
    private let instant: @Sendable () -> ContinuousClock.Instant
    private var pots: [APICaller.Account: Pot] = [:]

    /// - Parameters:
    ///   - now: tells a caller of whose day nothing is known when it ends.
    ///   - instant: by which a day that the store has told of ends.
    init(
        now: @escaping @Sendable () -> WallTime, instant: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        take: @escaping Take
    ) {
        self.now = now
        self.instant = instant
        self.take = take
    }

    /// Takes through the bus.
    init(bus: MessageBus, now: @escaping @Sendable () -> WallTime) {
        self.init(now: now) { fill throws(BusError) in
            let reply = try await bus.request(.admission, as: Mss_Bus_V1_AdmissionCommands.self) { correlation in
                .with {
                    $0.correlation = correlation
                    fill(&$0.takeQuota)
                }
            }
            guard case .quota(let quota)? = reply.body else {
                throw BusError(.failed(notAttempted: false), "the reply is none to a taking")
            }
            return quota
        }
    }

    /// Makes pushes that count for the caller's day: all before they are made, those that were not stored no longer.
    nonisolated func paid(
        _ count: Int, by caller: APICaller?, _ make: () async -> APIAnswer
    ) async -> APIAnswer {
        switch await spend(count, of: caller) {
        case .refused(let answer): return answer
        case .granted(let grant):
            let answer = await make()
            let stored = (answer.results ?? [answer]).count { $0.mayBeStored }
            await giveBack(count - stored, of: grant)
            return answer
        }
    }

    /// Pays for so many pushes, all or none.
    nonisolated func spend(_ count: Int, of caller: APICaller?) async -> Outcome {
        guard let caller, let pushesPerDay = caller.limits.pushesPerDay else { return .granted(nil) }
        guard count <= pushesPerDay else { return .refused(Self.neverLeft(count, pushesPerDay)) }
        return await spend(count, of: caller, pushesPerDay)
    }

    /// Takes back what was paid for pushes that were not stored; the store's day must be the same.
    func giveBack(_ count: Int, of grant: Grant) {
        guard count > 0, let grant else { return }
        let account = grant.caller.account
        if pots[account]?.resetsAt == grant.resetsAt { pots[account]?.left += count }
    }

    /// How a caller stands, as far as this process knows; nil when it has no such limit.
    nonisolated func note(of caller: APICaller?) async -> RateNote? {
        guard let caller, let pushesPerDay = caller.limits.pushesPerDay else { return nil }
        return await note(of: pot(of: caller, pushesPerDay))
    }

    private func spend(_ count: Int, of caller: APICaller, _ pushesPerDay: Int) async -> Outcome {
        while !Task.isCancelled {
            var pot = pot(of: caller, pushesPerDay)
            if pot.left >= count {
                pot.left -= count
                pots[caller.account] = pot
                return .granted((caller, pot.resetsAt))
            }
            if pot.isTaking {
                let isAnswered = await withCheckedContinuation {
                    pots[caller.account, default: pot].waiting.append($0)
                }
                if isAnswered { continue }
                return .refused(Self.storeAway)
            }
            guard pot.remaining > 0 else { return .refused(usedUp(pot)) }
            pot.isTaking = true
            pots[caller.account] = pot
            let missing = count - pot.left
            let inAdvance = pot.isUnanswered ? 0 : min(Self.largestPart, pot.remaining / Self.partOfRest)
            let reply = await taken(max(missing, inAdvance), caller, pushesPerDay)
            if let outcome = settle(reply, count, of: caller) { return outcome }
        }
        return .refused(Self.storeAway)
    }

    private func taken(_ part: Int, _ caller: APICaller, _ pushesPerDay: Int) async -> Mss_Bus_V1_QuotaReply? {
        do throws(BusError) {
            return try await take {
                $0.instanceID = caller.instanceID.text
                $0.keyID = caller.keyID
                $0.pushes = UInt64(clamping: part)
                $0.pushesPerDay = UInt64(clamping: pushesPerDay)
            }
        } catch {
            return nil
        }
    }

    /// Puts what the store gave into the pot, pays for the pushes that it was asked for, and wakes who waits for it.
    ///
    /// The pushes are paid straight from the reply: whatever a clock says of its day, one taking answers a call.
    ///
    /// - Returns: nil when the day changed meanwhile and what was taken is too little for them.
    private func settle(_ reply: Mss_Bus_V1_QuotaReply?, _ count: Int, of caller: APICaller) -> Outcome? {
        guard var pot = pots[caller.account] else { return .refused(Self.storeAway) }
        var outcome: Outcome? = .refused(Self.storeAway)
        if let reply {
            let resetsAt = WallTime(milliseconds: reply.resetsAtMs)
            // What is left of another day does not count in this one.
            pot.left = (pot.resetsAt == resetsAt ? pot.left : 0) + Int(clamping: reply.granted)
            pot.remaining = Int(clamping: reply.remaining)
            pot.resetsAt = resetsAt
            pot.endsAt = instant() + .milliseconds(reply.resetsInMs)
            if pot.left >= count {
                pot.left -= count
                outcome = .granted((caller, resetsAt))
            } else {
                outcome = pot.remaining > 0 ? nil : .refused(usedUp(pot))
            }
        }
        pot.isUnanswered = reply == nil
        pot.isTaking = false
        let waiting = pot.waiting
        pot.waiting = []
        pots[caller.account] = pot
        for one in waiting { one.resume(returning: reply != nil) }
        if pots.count > Self.maximumPots { pots = pots.filter { $0.value.isTaking || !isOver($0.value) } }
        return outcome
    }

    /// The pot as it is now: of a day that is over, or of another limit, nothing is known.
    private func pot(of caller: APICaller, _ pushesPerDay: Int) -> Pot {
        let fresh = Pot(pushesPerDay: pushesPerDay, remaining: pushesPerDay, resetsAt: WallTime(milliseconds: 0))
        guard var pot = pots[caller.account] else { return fresh }
        if isOver(pot) || pot.pushesPerDay != pushesPerDay {
            (pot.pushesPerDay, pot.left, pot.remaining) = (pushesPerDay, 0, pushesPerDay)
        }
        return pot
    }

    private func isOver(_ pot: Pot) -> Bool { pot.endsAt.map { $0 <= instant() } ?? true }

    private func note(of pot: Pot) -> RateNote {
        let day: Int64 = 86_400_000
        let untilMidnight = Duration.milliseconds(day - now().milliseconds % day)
        let rest = isOver(pot) ? untilMidnight : pot.endsAt.map { instant().duration(to: $0) } ?? untilMidnight
        return RateNote(
            limit: pot.pushesPerDay, remaining: min(pot.pushesPerDay, pot.left + pot.remaining),
            resetSeconds: Int((rest / .seconds(1)).rounded(.up)))
    }

    /// No day has so many: a repeat cannot help.
    private static func neverLeft(_ count: Int, _ pushesPerDay: Int) -> APIAnswer {
        .result(
            .tooLarge,
            detail: "This call has \(count) pushes, and the caller has \(pushesPerDay) in a day; send fewer items, or"
                + " ask the operator for more.")
    }

    private func usedUp(_ pot: Pot) -> APIAnswer {
        .limited(
            by: note(of: pot),
            "This call has more pushes than are left of the day's \(pot.pushesPerDay); repeat it after midnight (UTC), or"
                + " ask the operator for more.")
    }
}
