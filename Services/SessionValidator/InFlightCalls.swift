import SyncModel
import TenantCalls

/// Merges requests for verdicts and decides which calls begin; pure. `Requester` identifies the receiver of a reply.
///
/// One call about a session is in flight at a time, for all requests about it (V5). Each tenant has its own limit of
/// calls, its own bounded queue and its own circuit breaker, so one slow tenant delays no other. The open files of this
/// process limit the calls of all tenants together.
struct InFlightCalls<Requester> {
    /// A user session to check.
    struct Request: Hashable, Sendable {
        let instanceID: InstanceID
        let userID: UserID
        let sessionID: SessionID
    }

    /// The next step of the caller.
    enum Action {
        /// Call the tenant, then report the outcome with `ended`.
        case call(Request)
        case answer([Requester], CheckOutcome)
    }

    /// A call that is in flight, or waits.
    private struct Pending {
        var requesters: [Requester]
        /// The pass of the call; nil while it waits.
        var pass: CircuitBreaker.Pass?
    }

    private struct Tenant {
        var running = 0
        var waiting: ArraySlice<(request: Request, since: ContinuousClock.Instant)> = []
        var breaker = CircuitBreaker()
    }

    /// The largest number of waiting calls of one tenant. Further requests get the verdict unknown at once, and their
    /// gateways repeat them.
    static var waitingMax: Int { 1_000 }
    /// The largest number of requesters of one call. A user has few devices, so more are a sign of a fault.
    static var requestersMax: Int { 100 }

    private let concurrency: Int
    private let runningMax: Int
    private let waitLimit: Duration
    private var running = 0
    private var tenants: [InstanceID: Tenant] = [:]
    private var pending: [Request: Pending] = [:]

    /// - Parameters:
    ///   - concurrency: the largest number of calls in flight for each tenant.
    ///   - runningMax: the largest number of calls in flight for all tenants; further requests get the verdict unknown
    ///     at once.
    ///   - waitLimit: the time that a requester waits for a reply. A call that waited longer is not made.
    init(concurrency: Int, runningMax: Int, waitLimit: Duration) {
        self.concurrency = concurrency
        self.runningMax = runningMax
        self.waitLimit = waitLimit
    }

    /// The number of calls in flight or waiting.
    var count: Int { pending.count }

    /// Adds a request, and returns the steps that follow.
    mutating func add(_ request: Request, _ requester: Requester, now: ContinuousClock.Instant) -> [Action] {
        if let joined = pending[request] {
            guard joined.requesters.count < Self.requestersMax else {
                return [.answer([requester], .unknown("too many requests for the same session"))]
            }
            pending[request]?.requesters.append(requester)
            return []
        }
        var tenant = tenants[request.instanceID] ?? Tenant()
        defer { tenants[request.instanceID] = tenant }
        if tenant.running >= concurrency {
            guard tenant.waiting.count < Self.waitingMax else {
                return [.answer([requester], .unknown("too many checks wait for the tenant"))]
            }
            tenant.waiting.append((request, now))
            pending[request] = Pending(requesters: [requester])
            return []
        }
        guard running < runningMax else { return [.answer([requester], .unknown("too many checks are in flight"))] }
        guard let pass = tenant.breaker.pass(at: now) else { return [.answer([requester], Self.resting)] }
        tenant.running += 1
        running += 1
        pending[request] = Pending(requesters: [requester], pass: pass)
        return [.call(request)]
    }

    /// Ends a call, and returns the steps that follow. At most one of them is a call.
    mutating func ended(_ request: Request, _ outcome: CheckOutcome, now: ContinuousClock.Instant) -> [Action] {
        guard let call = pending.removeValue(forKey: request), let pass = call.pass else { return [] }
        var tenant = tenants[request.instanceID] ?? Tenant()
        tenant.running -= 1
        running -= 1
        tenant.breaker.ended(pass, withAnswer: outcome.isAnswer, at: now)
        var actions = [Action.answer(call.requesters, outcome)]
        while tenant.running < concurrency, let (next, since) = tenant.waiting.popFirst() {
            if since + waitLimit <= now {
                actions.append(
                    .answer(pending.removeValue(forKey: next)?.requesters ?? [], .unknown("the check waited too long")))
            } else if let pass = tenant.breaker.pass(at: now) {
                tenant.running += 1
                running += 1
                pending[next]?.pass = pass
                actions.append(.call(next))
            } else {
                actions.append(.answer(pending.removeValue(forKey: next)?.requesters ?? [], Self.resting))
            }
        }
        tenants[request.instanceID] = tenant
        return actions
    }

    private static var resting: CheckOutcome { .unknown("the tenant does not answer; it is asked again shortly") }
}
