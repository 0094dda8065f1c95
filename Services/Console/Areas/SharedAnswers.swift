/// Answers that several ask for at the same time, made once: who asks while one is being made waits for it, and who asks
/// within its lifetime gets it too.
actor SharedAnswers<Key: Hashable & Sendable, Answer: Sendable> {
    /// What a making came to.
    typealias Outcome = Result<Answer, ConsoleFault>

    private let lifetime: Duration
    private var kept: [Key: (answer: Answer, until: ContinuousClock.Instant)] = [:]
    /// Those who wait, by what is being made.
    private(set) var waiting: [Key: [CheckedContinuation<Outcome, Never>]] = [:]

    /// - Parameter lifetime: of an answer, from when it is there.
    init(lifetime: Duration) { self.lifetime = lifetime }

    /// The answer of a key; a fault is told to those who waited for it, and kept for nobody.
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
