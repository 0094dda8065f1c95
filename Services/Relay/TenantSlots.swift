import SyncModel
import TenantCalls

/// Limits the calls in flight of each tenant, and stops calls of a tenant that does not respond; pure. Each tenant has
/// its own limit and circuit breaker, so a slow tenant delays only itself.
struct TenantSlots {
    private struct Tenant {
        var running = 0
        var breaker = CircuitBreaker()
    }

    private let concurrency: Int
    private let runningMax: Int
    private var tenants: [InstanceID: Tenant] = [:]
    /// Calls in flight of all tenants.
    private(set) var running = 0

    /// - Parameters:
    ///   - concurrency: the largest number of calls in flight for each tenant.
    ///   - runningMax: the largest number for all tenants together.
    init(concurrency: Int, runningMax: Int) {
        self.concurrency = concurrency
        self.runningMax = runningMax
    }

    /// The number of further calls that a tenant may have now.
    func free(for id: InstanceID, at now: ContinuousClock.Instant) -> Int {
        let tenant = tenants[id] ?? Tenant()
        return tenant.breaker.admits(min(concurrency - tenant.running, runningMax - running), at: now)
    }

    /// Begins a call; its end must be reported with `ended`. The value is nil if no call may begin.
    mutating func begin(_ id: InstanceID, at now: ContinuousClock.Instant) -> CircuitBreaker.Pass? {
        var tenant = tenants[id] ?? Tenant()
        guard let pass = tenant.breaker.pass(at: now) else { return nil }
        tenant.running += 1
        running += 1
        tenants[id] = tenant
        return pass
    }

    /// Ends a call. `isAnswer`: the endpoint responded.
    mutating func ended(
        _ id: InstanceID, _ pass: CircuitBreaker.Pass, withAnswer isAnswer: Bool, at now: ContinuousClock.Instant
    ) {
        tenants[id]?.running -= 1
        running -= 1
        tenants[id]?.breaker.ended(pass, withAnswer: isAnswer, at: now)
    }
}
