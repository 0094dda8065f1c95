import SyncModel

/// Who asks what, and which question goes out when; pure. `Asker` is whoever wants the answer.
///
/// One question about a session is under way at a time, however many ask it (spec V5). Each tenant has its own limit
/// of questions under way, its own bounded line of those that wait, and its own breaker, so that one slow tenant holds
/// up no other.
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
    private let patience: Duration
    private var tenants: [InstanceID: Tenant] = [:]
    private var askers: [Question: [Asker]] = [:]

    /// - Parameters:
    ///   - concurrency: questions under way per tenant.
    ///   - patience: how long an asker waits; a question that waited longer is not asked any more.
    init(concurrency: Int, patience: Duration) {
        self.concurrency = concurrency
        self.patience = patience
    }

    /// Questions under way or waiting.
    var count: Int { askers.count }

    /// Somebody asks.
    mutating func ask(_ question: Question, _ asker: Asker, now: ContinuousClock.Instant) -> [Action] {
        if let joined = askers[question] {
            guard joined.count < Self.askersMax else { return [.answer([asker], .unknown("too many ask the same"))] }
            askers[question, default: []].append(asker)
            return []
        }
        var tenant = tenants[question.instanceID] ?? Tenant()
        defer { tenants[question.instanceID] = tenant }
        if tenant.running >= concurrency {
            guard tenant.waiting.count < Self.waitingMax else {
                return [.answer([asker], .unknown("too many checks wait for the tenant"))]
            }
            tenant.waiting.append((question, now))
            askers[question] = [asker]
            return []
        }
        guard tenant.breaker.admits(at: now) else { return [.answer([asker], Self.resting)] }
        tenant.running += 1
        askers[question] = [asker]
        return [.call(question)]
    }

    /// A question came back. At most one of the actions is a call.
    mutating func ended(_ question: Question, _ outcome: CheckOutcome, now: ContinuousClock.Instant) -> [Action] {
        var tenant = tenants[question.instanceID] ?? Tenant()
        tenant.running -= 1
        tenant.breaker.ended(withAnswer: outcome.isAnswer, at: now)
        var actions = [Action.answer(askers.removeValue(forKey: question) ?? [], outcome)]
        while tenant.running < concurrency, let (next, since) = tenant.waiting.popFirst() {
            if since + patience <= now {
                actions.append(.answer(askers.removeValue(forKey: next) ?? [], .unknown("it waited too long")))
            } else if tenant.breaker.admits(at: now) {
                tenant.running += 1
                actions.append(.call(next))
            } else {
                actions.append(.answer(askers.removeValue(forKey: next) ?? [], Self.resting))
            }
        }
        tenants[question.instanceID] = tenant
        return actions
    }

    private static var resting: CheckOutcome { .unknown("the tenant does not answer; it is asked again shortly") }
}
