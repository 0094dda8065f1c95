import ServiceKit
import SyncModel

/// Which new connections are taken, before anything is spent on them; pure (reliability SEC2).
///
/// A flood must not keep others out. So each source has a rate; sources whose last connection failed share a part of
/// the handshakes; and when too many connections wait, those whose last one failed give way first, and among
/// equals the source that has most.
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

    /// The connections of one source that have sent no `Connect`, in the order of arrival.
    private struct Waiting {
        var numbers: [UInt64] = []
        var isSuspect = false

        /// Whether these give way before others do.
        func isBefore(_ other: Waiting) -> Bool {
            (isSuspect ? 1 : 0, numbers.count) > (other.isSuspect ? 1 : 0, other.numbers.count)
        }
    }

    private let limits: AdmissionLimits
    private var handshakes: TokenBucket
    private var suspectHandshakes: TokenBucket
    private var sources: RecentTable<SourceAddress, Source>
    private var unconnected: [UInt64: SourceAddress] = [:]
    /// The same by source.
    private var waiting: [SourceAddress: Waiting] = [:]

    init(limits: AdmissionLimits, now: ContinuousClock.Instant) {
        self.limits = limits
        handshakes = TokenBucket(perSecond: limits.handshakes, at: now)
        suspectHandshakes = TokenBucket(perSecond: limits.suspectHandshakes, at: now)
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
        guard !isSuspect || suspectHandshakes.take(at: now), handshakes.take(at: now) else {
            return .refuse(.handshakeRate)
        }
        var displaced: UInt64?
        if unconnected.count >= limits.unconnected {
            guard let number = givingWay(to: waiting[source] ?? Waiting(isSuspect: isSuspect)) else {
                return .refuse(.unconnected)
            }
            displaced = number
            settle(number)
        }
        unconnected[number] = source
        waiting[source, default: Waiting()].numbers.append(number)
        waiting[source]?.isSuspect = isSuspect
        return .admit(closing: displaced)
    }

    /// It has sent a `Connect` that was taken.
    mutating func connected(_ number: UInt64, at now: ContinuousClock.Instant) {
        if let source = settle(number) { note(source, isSuspect: false, at: now) }
    }

    /// It is gone.
    mutating func ended(_ number: UInt64, at now: ContinuousClock.Instant) {
        if let source = settle(number) { note(source, isSuspect: true, at: now) }
    }

    /// The oldest connection of the source that gives way first; nil: none does so before this one.
    private func givingWay(to own: Waiting) -> UInt64? {
        let first = waiting.values.max { one, other in
            other.isBefore(one) || (!one.isBefore(other) && other.numbers[0] < one.numbers[0])
        }
        return first.flatMap { $0.isBefore(own) ? $0.numbers.first : nil }
    }

    @discardableResult
    private mutating func settle(_ number: UInt64) -> SourceAddress? {
        guard let source = unconnected.removeValue(forKey: number) else { return nil }
        waiting[source]?.numbers.removeAll { $0 == number }
        if waiting[source]?.numbers.isEmpty == true { waiting[source] = nil }
        return source
    }

    private mutating func note(_ source: SourceAddress, isSuspect: Bool, at now: ContinuousClock.Instant) {
        let new = Source(connections: TokenBucket(perSecond: limits.sourceConnections, at: now))
        sources.update(source, at: now, new: new) { $0.isSuspect = isSuspect }
        waiting[source]?.isSuspect = isSuspect
    }
}
