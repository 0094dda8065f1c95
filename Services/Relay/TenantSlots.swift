import SyncModel
import TenantCalls

/// How many calls each tenant may have under way, and whether it is called at all; pure. Each tenant has its own limit
/// and its own breaker, so that one slow tenant delays only itself.
struct TenantSlots {
    private struct Tenant {
        var running = 0
        var breaker = CircuitBreaker()
    }

    private let concurrency: Int
    private let runningMax: Int
    private var tenants: [InstanceID: Tenant] = [:]
    /// Calls under way of all tenants.
    private(set) var running = 0

    /// - Parameters:
    ///   - concurrency: calls under way per tenant.
    ///   - runningMax: of all tenants.
    init(concurrency: Int, runningMax: Int) {
        self.concurrency = concurrency
        self.runningMax = runningMax
    }

    /// How many more calls a tenant may have now.
    func free(for id: InstanceID, at now: ContinuousClock.Instant) -> Int {
        let tenant = tenants[id] ?? Tenant()
        return tenant.breaker.admits(min(concurrency - tenant.running, runningMax - running), at: now)
    }

    /// A call begins, whose end must be reported; nil when none may.
    mutating func begin(_ id: InstanceID, at now: ContinuousClock.Instant) -> CircuitBreaker.Pass? {
        var tenant = tenants[id] ?? Tenant()
        guard let pass = tenant.breaker.pass(at: now) else { return nil }
        tenant.running += 1
        running += 1
        tenants[id] = tenant
        return pass
    }

    /// A call has ended.
    mutating func ended(
        _ id: InstanceID, _ pass: CircuitBreaker.Pass, withAnswer isAnswer: Bool, at now: ContinuousClock.Instant
    ) {
        tenants[id]?.running -= 1
        running -= 1
        tenants[id]?.breaker.ended(pass, withAnswer: isAnswer, at: now)
    }
}
