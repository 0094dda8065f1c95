import Metrics
import NIOCore
import ServerTLS
import ServiceKit
import SyncModel
import Synchronization

/// Applies the admission rules for all event loops, closes displaced connections, and counts refusals.
final class AdmissionController: Sendable {
    private struct Arrivals {
        var admission: Admission
        var last: UInt64 = 0
    }

    let limits: AdmissionLimits
    private let clock: ProcessClock
    private let arrivals: Mutex<Arrivals>
    private let rates: Mutex<SharedRates>
    private let lateness = Mutex<[ObjectIdentifier: LoopLateness]>([:])
    /// The connections without a `Connect`.
    private let channels = Mutex<[UInt64: any Channel]>([:])
    private let counters: [AdmissionRefusal: Counter]

    init(limits: AdmissionLimits, clock: ProcessClock = .system) {
        self.limits = limits
        self.clock = clock
        arrivals = Mutex(Arrivals(admission: Admission(limits: limits, now: clock.now())))
        rates = Mutex(SharedRates(limits: limits))
        counters = Dictionary(
            uniqueKeysWithValues: AdmissionRefusal.allCases.map {
                ($0, Counter(label: "mss_gateway_refused_connections", dimensions: [("reason", $0.rawValue)]))
            })
    }

    /// Whether the peer is a trusted balancer, which sends the source of each connection.
    func isTrustedProxy(_ address: SocketAddress?) -> Bool {
        guard !limits.trustedProxies.isEmpty, let address = IPAddress(address) else { return false }
        return limits.trustedProxies.contains { $0.contains(address) }
    }

    /// Draws a number for a new connection, unique in this process.
    func number() -> UInt64 {
        arrivals.withLock { arrivals in
            arrivals.last += 1
            return arrivals.last
        }
    }

    /// Accepts or refuses a connection whose source is known.
    ///
    /// - Returns: false: the caller must close the connection.
    func admit(_ number: UInt64, _ channel: any Channel, from source: SourceAddress) -> Bool {
        let (now, lateness) = (clock.now(), measureLateness(of: channel.eventLoop))
        switch arrivals.withLock({ $0.admission.arrived(number, from: source, lateness: lateness, at: now) }) {
        case .refuse(let reason):
            count(reason)
            return false
        case .admit(let displaced):
            channels.withLock { $0[number] = channel }
            if let displaced, let other = channels.withLock({ $0.removeValue(forKey: displaced) }) {
                count(.displaced)
                other.eventLoop.execute { other.pipeline.syncOperations.closePastTLS() }
            }
            channel.closeFuture.whenComplete { [self] _ in
                arrivals.withLock { $0.admission.ended(number, at: clock.now()) }
                channels.withLock { $0[number] = nil }
            }
            return true
        }
    }

    /// The lateness of the loop now. Starts the next measurement.
    private func measureLateness(of loop: any EventLoop) -> Duration {
        let (key, now) = (ObjectIdentifier(loop), clock.now())
        let (lateness, mustProbe) = lateness.withLock { loops in
            (loops[key]?.lateness(at: now) ?? .zero, loops[key, default: LoopLateness()].begin(at: now))
        }
        if mustProbe { loop.execute { self.lateness.withLock { $0[key]?.end(at: self.clock.now()) } } }
        return lateness
    }

    /// The number of connections without a `Connect`.
    var unconnectedCount: Int { arrivals.withLock { $0.admission.unconnectedCount } }

    /// Records that the gateway accepted the connection's `Connect`.
    func connected(_ number: UInt64) {
        arrivals.withLock { $0.admission.connected(number, at: clock.now()) }
        channels.withLock { $0[number] = nil }
    }

    /// Charges one connect to an app. Call it after the signature was checked.
    ///
    /// - Returns: false: the app has used up its rate.
    func chargeConnect(_ instanceID: InstanceID, at now: ContinuousClock.Instant) -> Bool {
        let isAllowed = rates.withLock { $0.chargeConnect(instanceID, at: now) }
        if !isAllowed { count(.appRate) }
        return isAllowed
    }

    /// Charges one bind to a user.
    ///
    /// - Returns: false: the user has used up its rate.
    func chargeBind(_ userID: UserID, of instanceID: InstanceID, at now: ContinuousClock.Instant) -> Bool {
        let isAllowed = rates.withLock { $0.chargeBind(userID, of: instanceID, at: now) }
        if !isAllowed { count(.userRate) }
        return isAllowed
    }

    /// Charges a frame to the app.
    ///
    /// - Returns: the time to wait before the next frame is read.
    func charge(_ cost: FrameCost, of instanceID: InstanceID, at now: ContinuousClock.Instant) -> Duration {
        rates.withLock { $0.charge(cost, of: instanceID, at: now) }
    }

    /// Counts a connection that was refused or ended.
    func count(_ reason: AdmissionRefusal) { counters[reason]?.increment() }
}
