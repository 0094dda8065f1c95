import Metrics
import NIOCore
import ServerTLS
import ServiceKit
import SyncModel
import Synchronization

/// Asks the rules of admission for all event loops, closes who has to give way, and counts.
final class AdmissionDesk: Sendable {
    private struct Arrivals {
        var admission: Admission
        var last: UInt64 = 0
    }

    let limits: AdmissionLimits
    private let clock: ProcessClock
    private let arrivals: Mutex<Arrivals>
    private let rates: Mutex<SharedRates>
    /// Those without a `Connect`.
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

    /// Whether the other side is a balancer, which tells where a connection comes from.
    func isTrustedProxy(_ address: SocketAddress?) -> Bool {
        guard !limits.trustedProxies.isEmpty, let address = IPAddress(address) else { return false }
        return limits.trustedProxies.contains { $0.contains(address) }
    }

    /// A number for a connection that was just accepted, unique in this process.
    func number() -> UInt64 {
        arrivals.withLock { arrivals in
            arrivals.last += 1
            return arrivals.last
        }
    }

    /// Takes a connection whose source is known now; false: it is to be closed at once.
    func admit(_ number: UInt64, _ channel: any Channel, from source: SourceAddress) -> Bool {
        switch arrivals.withLock({ $0.admission.arrived(number, from: source, at: clock.now()) }) {
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

    /// Connections without a `Connect`.
    var unconnectedCount: Int { arrivals.withLock { $0.admission.unconnectedCount } }

    /// It has sent a `Connect` that was taken.
    func connected(_ number: UInt64) {
        arrivals.withLock { $0.admission.connected(number, at: clock.now()) }
        channels.withLock { $0[number] = nil }
    }

    /// A device of the app connects, by a signature that is right where one is asked for; false: too often.
    func connects(_ instanceID: InstanceID, at now: ContinuousClock.Instant) -> Bool {
        let isTaken = rates.withLock { $0.connects(instanceID, at: now) }
        if !isTaken { count(.appRate) }
        return isTaken
    }

    /// Such a device binds the user; false: too often.
    func binds(_ userID: UserID, of instanceID: InstanceID, at now: ContinuousClock.Instant) -> Bool {
        let isTaken = rates.withLock { $0.binds(userID, of: instanceID, at: now) }
        if !isTaken { count(.userRate) }
        return isTaken
    }

    /// A frame of such a device came in; how long the device is to wait before it sends another.
    func took(_ cost: FrameCost, of instanceID: InstanceID, at now: ContinuousClock.Instant) -> Duration {
        rates.withLock { $0.took(cost, of: instanceID, at: now) }
    }

    /// Counts a connection that was refused or ended.
    func count(_ reason: AdmissionRefusal) { counters[reason]?.increment() }
}
