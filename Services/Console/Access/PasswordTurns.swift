import Synchronization

/// How many passwords may wait to be hashed: each takes its tenth of a second, on purpose, so that one source could
/// otherwise keep everybody else waiting (reliability SEC14).
final class PasswordTurns: Sendable {
    private let maximum: Int
    private let sourceMaximum: Int
    private let waiting = Mutex<[String: Int]>([:])

    /// - Parameters:
    ///   - maximum: of all sources together; above that the answer is "busy".
    ///   - sourceMaximum: of one source.
    init(maximum: Int = 16, sourceMaximum: Int = 4) {
        self.maximum = maximum
        self.sourceMaximum = sourceMaximum
    }

    /// Does the work of a source when there is room for it.
    ///
    /// - Throws: `busy`.
    func take<Result>(from source: String, _ work: () async -> Result) async throws(ConsoleFault) -> Result {
        let isTaken = waiting.withLock { waiting in
            guard waiting.values.reduce(0, +) < maximum, waiting[source, default: 0] < sourceMaximum else {
                return false
            }
            waiting[source, default: 0] += 1
            return true
        }
        guard isTaken else { throw .busy }
        defer {
            waiting.withLock { waiting in
                let rest = waiting[source, default: 1] - 1
                waiting[source] = rest == 0 ? nil : rest
            }
        }
        return await work()
    }
}
