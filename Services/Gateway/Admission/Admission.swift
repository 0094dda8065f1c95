import ServiceKit
import SyncModel

/// Decides which new connections the gateway accepts, before it spends anything on them; pure (SEC2).
///
/// A flood from some sources must not block others. Each source has a rate. Sources whose last connection failed share
/// one more rate. While the event loop is late, the gateway accepts no connection, so handshakes do not delay the
/// connected devices. When too many connections wait for a `Connect`, the gateway closes one of them: first those of
/// sources whose last connection failed, then those of the source with the most connections.
struct Admission: Sendable {
    /// The decision on a new connection.
    enum Decision: Equatable {
        /// Accept it. `closing`: the connection to close in exchange.
        case admit(closing: UInt64?)
        case refuse(AdmissionRefusal)
    }

    /// The state of one source. Not private: the compiler of Swift 6.3 crashes on a private type in the table.
    struct Source {
        fileprivate var connections: TokenBucket
        /// The last connection ended without a `Connect`.
        fileprivate var isSuspect = false
    }

    /// The connections of one source without a `Connect`, in order of arrival.
    private struct Waiting {
        var numbers: [UInt64] = []
        var isSuspect = false

        /// Whether the gateway closes one of these before one of the others.
        func yieldsBefore(_ other: Waiting) -> Bool {
            (isSuspect ? 1 : 0, numbers.count) > (other.isSuspect ? 1 : 0, other.numbers.count)
        }
    }

    private let limits: AdmissionLimits
    private var suspectHandshakes: TokenBucket
    private var sources: ExpiringTable<SourceAddress, Source>
    private var unconnected: [UInt64: SourceAddress] = [:]
    /// The same connections by source.
    private var waiting: [SourceAddress: Waiting] = [:]

    init(limits: AdmissionLimits, now: ContinuousClock.Instant) {
        self.limits = limits
        suspectHandshakes = TokenBucket(perSecond: limits.suspectHandshakes, at: now)
        // After this time a bucket is full again, so only the suspicion is lost.
        sources = ExpiringTable(
            keepingFor: .seconds(10 * TokenBucket.savedSeconds), maximum: AdmissionLimits.remembered)
    }

    /// The number of connections without a `Connect`.
    var unconnectedCount: Int { unconnected.count }

    /// Decides on a connection that was opened.
    ///
    /// - Parameters:
    ///   - number: unique in the process; it rises with each connection.
    ///   - lateness: of the event loop that would serve the connection.
    mutating func arrived(
        _ number: UInt64, from source: SourceAddress, lateness: Duration = .zero, at now: ContinuousClock.Instant
    ) -> Decision {
        let new = Source(connections: TokenBucket(perSecond: limits.sourceConnections, at: now))
        let (isInRate, isSuspect) = sources.update(source, at: now, new: new) {
            ($0.connections.consume(at: now), $0.isSuspect)
        }
        guard isInRate else { return .refuse(.sourceRate) }
        guard lateness <= limits.lateness else { return .refuse(.late) }
        guard !isSuspect || suspectHandshakes.consume(at: now) else { return .refuse(.suspectRate) }
        var displaced: UInt64?
        if unconnected.count >= limits.unconnected {
            guard let number = displaceable(by: waiting[source] ?? Waiting(isSuspect: isSuspect)) else {
                return .refuse(.unconnected)
            }
            displaced = number
            removeUnconnected(number)
        }
        unconnected[number] = source
        waiting[source, default: Waiting()].numbers.append(number)
        waiting[source]?.isSuspect = isSuspect
        return .admit(closing: displaced)
    }

    /// Records that the gateway accepted the connection's `Connect`.
    mutating func connected(_ number: UInt64, at now: ContinuousClock.Instant) {
        if let source = removeUnconnected(number) { record(source, isSuspect: false, at: now) }
    }

    /// Records that the connection ended.
    mutating func ended(_ number: UInt64, at now: ContinuousClock.Instant) {
        if let source = removeUnconnected(number) { record(source, isSuspect: true, at: now) }
    }

    /// The connection that the gateway closes for a new one of this source; nil: none.
    private func displaceable(by own: Waiting) -> UInt64? {
        let first = waiting.values.max { one, other in
            other.yieldsBefore(one) || (!one.yieldsBefore(other) && other.numbers[0] < one.numbers[0])
        }
        return first.flatMap { $0.yieldsBefore(own) ? $0.numbers.first : nil }
    }

    @discardableResult
    private mutating func removeUnconnected(_ number: UInt64) -> SourceAddress? {
        guard let source = unconnected.removeValue(forKey: number) else { return nil }
        waiting[source]?.numbers.removeAll { $0 == number }
        if waiting[source]?.numbers.isEmpty == true { waiting[source] = nil }
        return source
    }

    private mutating func record(_ source: SourceAddress, isSuspect: Bool, at now: ContinuousClock.Instant) {
        let new = Source(connections: TokenBucket(perSecond: limits.sourceConnections, at: now))
        sources.update(source, at: now, new: new) { $0.isSuspect = isSuspect }
        waiting[source]?.isSuspect = isSuspect
    }
}
