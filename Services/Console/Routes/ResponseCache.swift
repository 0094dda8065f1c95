/// Shares one answer between simultaneous requests with the same key, and keeps it for its lifetime.
actor ResponseCache<Key: Hashable & Sendable, Answer: Sendable> {
    /// The result of one computation.
    typealias Outcome = Result<Answer, ConsoleFault>

    private let lifetime: Duration
    private var kept: [Key: (answer: Answer, until: ContinuousClock.Instant)] = [:]
    /// The requests that wait for a computation in progress, by key.
    private(set) var waiting: [Key: [CheckedContinuation<Outcome, Never>]] = [:]

    /// - Parameter lifetime: the time that an answer is kept after its computation.
    init(lifetime: Duration) { self.lifetime = lifetime }

    /// The answer of a key. A fault goes to all waiting requests and is not kept.
    func answer(
        of key: Key, _ make: @Sendable () async throws(ConsoleFault) -> Answer
    ) async throws(ConsoleFault) -> Answer {
        if let held = kept[key], .now < held.until { return held.answer }
        if waiting[key] != nil {
            return try await withCheckedContinuation { waiting[key, default: []].append($0) }.get()
        }
        waiting[key] = []
        let outcome: Outcome
        do throws(ConsoleFault) {
            outcome = .success(try await make())
        } catch {
            outcome = .failure(error)
        }
        let now = ContinuousClock.now
        kept = kept.filter { now < $0.value.until }
        if case .success(let answer) = outcome { kept[key] = (answer, now + lifetime) }
        for one in waiting.removeValue(forKey: key) ?? [] { one.resume(returning: outcome) }
        return try outcome.get()
    }
}
