import BackendCalls
import BusMessages
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Enforces the pushes per day of a caller over all ingests: this process reserves a part of the day's pushes from the
/// store, and spends it.
///
/// The store never grants more pushes than the day has. A reserved part that is unspent when this process ends is lost.
actor PushQuotas {
    /// Reserves pushes from the store.
    typealias Reserve =
        @Sendable (_ fill: @Sendable (inout Mss_Bus_V1_TakeQuota) -> Void) async throws(BusError) ->
        Mss_Bus_V1_QuotaReply

    /// Whether pushes may be made.
    enum Outcome: Sendable {
        /// The pushes are counted; the caller of `spend` can refund those that were not stored.
        case granted(Grant)
        /// The response has the reason and the time of the next attempt.
        case refused(APIAnswer)
    }

    /// The caller and the day of counted pushes; nil for a caller without a limit.
    typealias Grant = (caller: APICaller, resetsAt: WallTime)?

    /// A caller's pushes of one day, as this process knows them.
    private struct Balance {
        var pushesPerDay: Int
        /// Reserved from the store and not spent.
        var unspent = 0
        /// The day's rest in the store, by its last reply.
        var remaining: Int
        /// Identifies the day, by the store's clock. The clock of this process decides nothing.
        var resetsAt: WallTime
        /// The end of the day on the steady clock of this process; nil until the store has replied.
        var endsAt: ContinuousClock.Instant?
        var isRequesting = false
        /// The store may have granted pushes in a lost reply. The next request then asks for no pushes in advance, so
        /// that a series of lost replies costs the day no more than the calls' own pushes.
        var lastRequestFailed = false
        /// Calls that wait for the request in flight; each resumes with whether the store replied.
        var waiting: [CheckedContinuation<Bool, Never>] = []
    }

    /// The largest number of pushes to reserve in advance.
    private static let advanceMaximum = 1_000
    /// One request reserves this part of the rest in advance, so that every ingest can reserve until the day's end.
    private static let advanceDivisor = 64
    /// Accounts in memory; above it, the accounts of ended days are removed.
    private static let maximumBalances = 10_000
    private static let storeAway = APIAnswer.unavailable(
        "The store did not answer; nothing was stored. Repeat the call.")

    private let reserve: Reserve
    private let now: @Sendable () -> WallTime
    private let instant: @Sendable () -> ContinuousClock.Instant
    private var balances: [APICaller.Account: Balance] = [:]

    /// - Parameters:
    ///   - now: computes the reset time of a caller before the store's first reply.
    ///   - instant: the steady clock for the end of a day.
    init(
        now: @escaping @Sendable () -> WallTime, instant: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        reserve: @escaping Reserve
    ) {
        self.now = now
        self.instant = instant
        self.reserve = reserve
    }

    /// Reserves pushes over the bus.
    init(bus: MessageBus, now: @escaping @Sendable () -> WallTime) {
        self.init(now: now) { fill throws(BusError) in
            let reply = try await bus.request(.admission, as: Mss_Bus_V1_AdmissionCommands.self) { correlation in
                .with {
                    $0.correlation = correlation
                    fill(&$0.takeQuota)
                }
            }
            guard case .quota(let quota)? = reply.body else {
                throw BusError(.failed(notAttempted: false), "unexpected reply type for a quota request")
            }
            return quota
        }
    }

    /// Counts pushes for the caller's day, makes them, and refunds those that were not stored.
    nonisolated func charge(
        _ count: Int, to caller: APICaller?, _ make: () async -> APIAnswer
    ) async -> APIAnswer {
        switch await spend(count, of: caller) {
        case .refused(let answer): return answer
        case .granted(let grant):
            let answer = await make()
            let stored = (answer.results ?? [answer]).count { $0.mayBeStored }
            await refund(count - stored, of: grant)
            return answer
        }
    }

    /// Counts pushes for the caller's day, all or none.
    nonisolated func spend(_ count: Int, of caller: APICaller?) async -> Outcome {
        guard let caller, let pushesPerDay = caller.limits.pushesPerDay else { return .granted(nil) }
        guard count <= pushesPerDay else { return .refused(Self.exceedsDay(count, pushesPerDay)) }
        return await spend(count, of: caller, pushesPerDay)
    }

    /// Refunds counted pushes that were not stored. Has no effect after the day has ended.
    func refund(_ count: Int, of grant: Grant) {
        guard count > 0, let grant else { return }
        let account = grant.caller.account
        if balances[account]?.resetsAt == grant.resetsAt { balances[account]?.unspent += count }
    }

    /// The caller's daily limit, as far as this process knows it; nil when the caller has none.
    nonisolated func status(of caller: APICaller?) async -> RateLimitStatus? {
        guard let caller, let pushesPerDay = caller.limits.pushesPerDay else { return nil }
        return await status(of: balance(of: caller, pushesPerDay))
    }

    private func spend(_ count: Int, of caller: APICaller, _ pushesPerDay: Int) async -> Outcome {
        while !Task.isCancelled {
            var balance = balance(of: caller, pushesPerDay)
            if balance.unspent >= count {
                balance.unspent -= count
                balances[caller.account] = balance
                return .granted((caller, balance.resetsAt))
            }
            if balance.isRequesting {
                let isAnswered = await withCheckedContinuation {
                    balances[caller.account, default: balance].waiting.append($0)
                }
                if isAnswered { continue }
                return .refused(Self.storeAway)
            }
            guard balance.remaining > 0 else { return .refused(usedUp(balance)) }
            balance.isRequesting = true
            balances[caller.account] = balance
            let missing = count - balance.unspent
            let inAdvance =
                balance.lastRequestFailed ? 0 : min(Self.advanceMaximum, balance.remaining / Self.advanceDivisor)
            let reply = await requestQuota(max(missing, inAdvance), caller, pushesPerDay)
            if let outcome = apply(reply, count, of: caller) { return outcome }
        }
        return .refused(Self.storeAway)
    }

    private func requestQuota(_ part: Int, _ caller: APICaller, _ pushesPerDay: Int) async -> Mss_Bus_V1_QuotaReply? {
        do throws(BusError) {
            return try await reserve {
                $0.instanceID = caller.instanceID.text
                $0.keyID = caller.keyID
                $0.pushes = UInt64(clamping: part)
                $0.pushesPerDay = UInt64(clamping: pushesPerDay)
            }
        } catch {
            return nil
        }
    }

    /// Adds the granted pushes to the balance, counts the requester's own, and resumes the waiting calls.
    ///
    /// The requester's pushes are counted before any clock is read, so one request is enough for a call at midnight.
    ///
    /// - Returns: nil when the day changed during the request and the grant is too small for the call.
    private func apply(_ reply: Mss_Bus_V1_QuotaReply?, _ count: Int, of caller: APICaller) -> Outcome? {
        guard var balance = balances[caller.account] else { return .refused(Self.storeAway) }
        var outcome: Outcome? = .refused(Self.storeAway)
        if let reply {
            let resetsAt = WallTime(milliseconds: reply.resetsAtMs)
            // Pushes of another day do not count in this one.
            balance.unspent = (balance.resetsAt == resetsAt ? balance.unspent : 0) + Int(clamping: reply.granted)
            balance.remaining = Int(clamping: reply.remaining)
            balance.resetsAt = resetsAt
            balance.endsAt = instant() + .milliseconds(reply.resetsInMs)
            if balance.unspent >= count {
                balance.unspent -= count
                outcome = .granted((caller, resetsAt))
            } else {
                outcome = balance.remaining > 0 ? nil : .refused(usedUp(balance))
            }
        }
        balance.lastRequestFailed = reply == nil
        balance.isRequesting = false
        let waiting = balance.waiting
        balance.waiting = []
        balances[caller.account] = balance
        for continuation in waiting { continuation.resume(returning: reply != nil) }
        if balances.count > Self.maximumBalances {
            balances = balances.filter { $0.value.isRequesting || !isOver($0.value) }
        }
        return outcome
    }

    /// The caller's balance; a new one when the day is over or the limit has changed.
    private func balance(of caller: APICaller, _ pushesPerDay: Int) -> Balance {
        let fresh = Balance(pushesPerDay: pushesPerDay, remaining: pushesPerDay, resetsAt: WallTime(milliseconds: 0))
        guard var balance = balances[caller.account] else { return fresh }
        if isOver(balance) || balance.pushesPerDay != pushesPerDay {
            (balance.pushesPerDay, balance.unspent, balance.remaining) = (pushesPerDay, 0, pushesPerDay)
        }
        return balance
    }

    private func isOver(_ balance: Balance) -> Bool { balance.endsAt.map { $0 <= instant() } ?? true }

    private func status(of balance: Balance) -> RateLimitStatus {
        let day: Int64 = 86_400_000
        let untilMidnight = Duration.milliseconds(day - now().milliseconds % day)
        let rest = isOver(balance) ? untilMidnight : balance.endsAt.map { instant().duration(to: $0) } ?? untilMidnight
        return RateLimitStatus(
            limit: balance.pushesPerDay, remaining: min(balance.pushesPerDay, balance.unspent + balance.remaining),
            resetSeconds: Int((rest / .seconds(1)).rounded(.up)))
    }

    /// For a call with more pushes than a whole day allows; a repeat cannot succeed.
    private static func exceedsDay(_ count: Int, _ pushesPerDay: Int) -> APIAnswer {
        .result(
            .tooLarge,
            detail:
                "This call has \(count) pushes, and the caller's limit is \(pushesPerDay) a day; send fewer items, or"
                + " ask the operator for a higher limit.")
    }

    private func usedUp(_ balance: Balance) -> APIAnswer {
        .limited(
            by: status(of: balance),
            "This call has more pushes than the rest of the day's \(balance.pushesPerDay); repeat it after midnight"
                + " (UTC), or ask the operator for a higher limit.")
    }
}
