import BusMessages
import NIOHTTP1
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

    private struct Account: Hashable {
        let instanceID: InstanceID
        let keyID: String
    }

    /// A caller's pushes of one day, as this process knows them.
    private struct Pot {
        var pushesPerDay: Int
        /// Taken and not spent.
        var left = 0
        /// What the store had left when it was last asked.
        var remaining: Int
        var resetsAt: WallTime
        var isTaking = false
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
    private var pots: [Account: Pot] = [:]

    init(now: @escaping @Sendable () -> WallTime, take: @escaping Take) {
        self.now = now
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

    /// Pays for so many pushes, all or none.
    nonisolated func spend(_ count: Int, of caller: APICaller?) async -> Outcome {
        guard let caller, let pushesPerDay = caller.limits.pushesPerDay else { return .granted(nil) }
        return await spend(count, of: caller, pushesPerDay)
    }

    /// Takes back what was paid for pushes that were not stored; the store's day must be the same.
    func giveBack(_ count: Int, of grant: Grant) {
        guard count > 0, let grant else { return }
        let account = Account(instanceID: grant.caller.instanceID, keyID: grant.caller.keyID)
        if pots[account]?.resetsAt == grant.resetsAt { pots[account]?.left += count }
    }

    /// How a caller stands, as far as this process knows; nil when it has no such limit.
    nonisolated func note(of caller: APICaller?) async -> RateNote? {
        guard let caller, let pushesPerDay = caller.limits.pushesPerDay else { return nil }
        return await note(of: pot(of: caller, pushesPerDay))
    }

    private func spend(_ count: Int, of caller: APICaller, _ pushesPerDay: Int) async -> Outcome {
        let account = Account(instanceID: caller.instanceID, keyID: caller.keyID)
        while true {
            var pot = pot(of: caller, pushesPerDay)
            if pot.left >= count {
                pot.left -= count
                pots[account] = pot
                return .granted((caller, pot.resetsAt))
            }
            if pot.isTaking {
                let isAnswered = await withCheckedContinuation { pots[account, default: pot].waiting.append($0) }
                if isAnswered { continue }
                return .refused(Self.storeAway)
            }
            guard pot.remaining > 0 else { return .refused(usedUp(pot)) }
            pot.isTaking = true
            pots[account] = pot
            let part = max(count - pot.left, min(Self.largestPart, pot.remaining / Self.partOfRest))
            let reply = await taken(part, caller, pushesPerDay)
            guard settle(account, reply) else { return .refused(Self.storeAway) }
        }
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

    /// Puts what the store gave into the pot and wakes who waits for it; false when the store gave no answer.
    private func settle(_ account: Account, _ reply: Mss_Bus_V1_QuotaReply?) -> Bool {
        guard var pot = pots[account] else { return false }
        if let reply {
            let resetsAt = WallTime(milliseconds: reply.resetsAtMs)
            // What is left of another day does not count in this one.
            pot.left = (pot.resetsAt == resetsAt ? pot.left : 0) + Int(clamping: reply.granted)
            pot.remaining = Int(clamping: reply.remaining)
            pot.resetsAt = resetsAt
        }
        pot.isTaking = false
        let waiting = pot.waiting
        pot.waiting = []
        pots[account] = pot
        for one in waiting { one.resume(returning: reply != nil) }
        if pots.count > Self.maximumPots { pots = pots.filter { $0.value.isTaking || $0.value.resetsAt > now() } }
        return reply != nil
    }

    /// The pot as it is now: of a day that is over, or of another limit, nothing is known.
    private func pot(of caller: APICaller, _ pushesPerDay: Int) -> Pot {
        let fresh = Pot(pushesPerDay: pushesPerDay, remaining: pushesPerDay, resetsAt: WallTime(milliseconds: 0))
        let account = Account(instanceID: caller.instanceID, keyID: caller.keyID)
        guard var pot = pots[account] else { return fresh }
        if pot.resetsAt <= now() || pot.pushesPerDay != pushesPerDay {
            (pot.pushesPerDay, pot.left, pot.remaining) = (pushesPerDay, 0, pushesPerDay)
        }
        return pot
    }

    private func note(of pot: Pot) -> RateNote {
        let day: Int64 = 86_400_000
        let time = now().milliseconds
        let end = pot.resetsAt.milliseconds > time ? pot.resetsAt.milliseconds : (time / day + 1) * day
        return RateNote(
            limit: pot.pushesPerDay, remaining: min(pot.pushesPerDay, pot.left + pot.remaining),
            resetSeconds: Int((end - time + 999) / 1_000))
    }

    private func usedUp(_ pot: Pot) -> APIAnswer {
        let note = note(of: pot)
        return APIAnswer(
            status: .tooManyRequests, code: .systemError,
            detail: "This call has more pushes than are left of the day's \(pot.pushesPerDay); repeat it after midnight"
                + " (UTC), or ask the operator for more.", retryAfterSeconds: note.resetSeconds, rate: note)
    }
}
