import SyncModel
import TenantCalls

/// Who asks what, and which question goes out when; pure. `Asker` is whoever wants the answer.
///
/// One question about a session is under way at a time, however many ask it (spec V5). Each tenant has its own limit
/// of questions under way, its own bounded line of those that wait, and its own breaker, so that one slow tenant holds
/// up no other. What all tenants together may have under way is bounded by what this process can open.
struct InFlightCalls<Asker> {
    /// What a question is about.
    struct Question: Hashable, Sendable {
        let instanceID: InstanceID
        let userID: UserID
        let sessionID: SessionID
    }

    /// What the driver does next.
    enum Action {
        /// Ask the tenant, then report `ended`.
        case call(Question)
        case answer([Asker], CheckOutcome)
    }

    /// A question that is under way, or waits.
    private struct Pending {
        var askers: [Asker]
        /// Of its call; nil while it waits.
        var pass: CircuitBreaker.Pass?
    }

    private struct Tenant {
        var running = 0
        var waiting: ArraySlice<(question: Question, since: ContinuousClock.Instant)> = []
        var breaker = CircuitBreaker()
    }

    /// Questions that wait for one tenant; those beyond are unknown at once, and their gateways ask again.
    static var waitingMax: Int { 1_000 }
    /// Askers of one question; a user has few devices, so more than this is a fault somewhere.
    static var askersMax: Int { 100 }

    private let concurrency: Int
    private let runningMax: Int
    private let patience: Duration
    private var running = 0
    private var tenants: [InstanceID: Tenant] = [:]
    private var pending: [Question: Pending] = [:]

    /// - Parameters:
    ///   - concurrency: questions under way per tenant.
    ///   - runningMax: questions under way of all tenants; those beyond are unknown at once.
    ///   - patience: how long an asker waits; a question that waited longer is not asked any more.
    init(concurrency: Int, runningMax: Int, patience: Duration) {
        self.concurrency = concurrency
        self.runningMax = runningMax
        self.patience = patience
    }

    /// Questions under way or waiting.
    var count: Int { pending.count }

    /// Somebody asks.
    mutating func ask(_ question: Question, _ asker: Asker, now: ContinuousClock.Instant) -> [Action] {
        if let joined = pending[question] {
            guard joined.askers.count < Self.askersMax else {
                return [.answer([asker], .unknown("too many ask the same"))]
            }
            pending[question]?.askers.append(asker)
            return []
        }
        var tenant = tenants[question.instanceID] ?? Tenant()
        defer { tenants[question.instanceID] = tenant }
        if tenant.running >= concurrency {
            guard tenant.waiting.count < Self.waitingMax else {
                return [.answer([asker], .unknown("too many checks wait for the tenant"))]
            }
            tenant.waiting.append((question, now))
            pending[question] = Pending(askers: [asker])
            return []
        }
        guard running < runningMax else { return [.answer([asker], .unknown("too many checks are under way"))] }
        guard let pass = tenant.breaker.pass(at: now) else { return [.answer([asker], Self.resting)] }
        tenant.running += 1
        running += 1
        pending[question] = Pending(askers: [asker], pass: pass)
        return [.call(question)]
    }

    /// A question came back. At most one of the actions is a call.
    mutating func ended(_ question: Question, _ outcome: CheckOutcome, now: ContinuousClock.Instant) -> [Action] {
        guard let call = pending.removeValue(forKey: question), let pass = call.pass else { return [] }
        var tenant = tenants[question.instanceID] ?? Tenant()
        tenant.running -= 1
        running -= 1
        tenant.breaker.ended(pass, withAnswer: outcome.isAnswer, at: now)
        var actions = [Action.answer(call.askers, outcome)]
        while tenant.running < concurrency, let (next, since) = tenant.waiting.popFirst() {
            if since + patience <= now {
                actions.append(.answer(pending.removeValue(forKey: next)?.askers ?? [], .unknown("it waited too long")))
            } else if let pass = tenant.breaker.pass(at: now) {
                tenant.running += 1
                running += 1
                pending[next]?.pass = pass
                actions.append(.call(next))
            } else {
                actions.append(.answer(pending.removeValue(forKey: next)?.askers ?? [], Self.resting))
            }
        }
        tenants[question.instanceID] = tenant
        return actions
    }

    private static var resting: CheckOutcome { .unknown("the tenant does not answer; it is asked again shortly") }
}
