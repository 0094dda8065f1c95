import ServiceKit
import SyncModel

/// Which new connections are taken, before anything is spent on them; pure (reliability SEC2).
///
/// A flood must not keep others out. So each source has a rate; part of the handshakes is kept for sources whose last
/// connection did not fail; and when too many connections wait, the source that has most of them gives way.
struct Admission: Sendable {
    /// What becomes of a new connection.
    enum Decision: Equatable {
        /// Taken; another one is closed for it.
        case admit(closing: UInt64?)
        case refuse(AdmissionRefusal)
    }

    /// What is remembered of a source; not private, because the compiler of Swift 6.3 then fails on its table.
    struct Source {
        fileprivate var connections: TokenBucket
        /// Its last connection ended without a `Connect`.
        fileprivate var isSuspect = false
    }

    private let limits: AdmissionLimits
    private var handshakes: TokenBucket
    private var sources: RecentTable<SourceAddress, Source>
    private var unconnected: [UInt64: SourceAddress] = [:]
    /// The same by source, each in the order of arrival.
    private var numbers: [SourceAddress: [UInt64]] = [:]

    init(limits: AdmissionLimits, now: ContinuousClock.Instant) {
        self.limits = limits
        handshakes = TokenBucket(perSecond: limits.handshakes, at: now)
        // After that time a bucket is full again: nothing is lost with it but the suspicion.
        sources = RecentTable(
            keepingFor: .seconds(10 * TokenBucket.savedSeconds), maximum: AdmissionLimits.remembered)
    }

    /// Connections without a `Connect`.
    var unconnectedCount: Int { unconnected.count }

    /// A connection was opened.
    ///
    /// - Parameter number: unique; the lower, the older.
    mutating func arrived(_ number: UInt64, from source: SourceAddress, at now: ContinuousClock.Instant) -> Decision {
        let new = Source(connections: TokenBucket(perSecond: limits.sourceConnections, at: now))
        let (isInRate, isSuspect) = sources.update(source, at: now, new: new) {
            ($0.connections.take(at: now), $0.isSuspect)
        }
        guard isInRate else { return .refuse(.sourceRate) }
        guard handshakes.take(at: now, leaving: isSuspect ? AdmissionLimits.reserve : 0) else {
            return .refuse(.handshakeRate)
        }
        var displaced: UInt64?
        if unconnected.count >= limits.unconnected {
            let largest = numbers.values.max { ($0.count, $1[0]) < ($1.count, $0[0]) } ?? []
            guard largest.count > numbers[source, default: []].count else { return .refuse(.unconnected) }
            displaced = largest.first
            if let displaced { ended(displaced, at: now) }
        }
        unconnected[number] = source
        numbers[source, default: []].append(number)
        return .admit(closing: displaced)
    }

    /// It has sent a `Connect` that was taken.
    mutating func connected(_ number: UInt64, at now: ContinuousClock.Instant) {
        settle(number, at: now, failed: false)
    }

    /// It is gone.
    mutating func ended(_ number: UInt64, at now: ContinuousClock.Instant) { settle(number, at: now, failed: true) }

    private mutating func settle(_ number: UInt64, at now: ContinuousClock.Instant, failed: Bool) {
        guard let source = unconnected.removeValue(forKey: number) else { return }
        numbers[source]?.removeAll { $0 == number }
        if numbers[source]?.isEmpty == true { numbers[source] = nil }
        let new = Source(connections: TokenBucket(perSecond: limits.sourceConnections, at: now))
        sources.update(source, at: now, new: new) { $0.isSuspect = failed }
    }
}
