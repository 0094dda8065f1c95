/// How late an event loop is: the time that it last took to come to a job; pure.
///
/// The gateway measures it with the connections that arrive, so an idle gateway measures nothing.
struct LoopLateness: Sendable {
    /// A measurement is used for this time. Afterwards the loop counts as idle.
    private static let lifetime = Duration.milliseconds(200)

    private var probeSince: ContinuousClock.Instant?
    private var last: (lateness: Duration, at: ContinuousClock.Instant)?

    /// The lateness now. A probe that has not returned counts with its age.
    func lateness(at now: ContinuousClock.Instant) -> Duration {
        let measured = last.flatMap { $0.at + Self.lifetime > now ? $0.lateness : nil } ?? .zero
        return max(measured, probeSince.map { $0.duration(to: now) } ?? .zero)
    }

    /// Begins a measurement, unless one is in progress.
    ///
    /// - Returns: whether the caller must give the loop a job that calls `end`.
    mutating func begin(at now: ContinuousClock.Instant) -> Bool {
        guard probeSince == nil else { return false }
        probeSince = now
        return true
    }

    /// Ends the measurement.
    mutating func end(at now: ContinuousClock.Instant) {
        guard let since = probeSince else { return }
        last = (since.duration(to: now), now)
        probeSince = nil
    }
}
