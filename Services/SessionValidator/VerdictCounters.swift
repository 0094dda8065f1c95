import Metrics

/// How many questions were answered, by verdict.
struct VerdictCounters: Sendable {
    private let valid = Counter(label: "mss_validator_answers", dimensions: [("verdict", "valid")])
    private let invalid = Counter(label: "mss_validator_answers", dimensions: [("verdict", "invalid")])
    private let unknown = Counter(label: "mss_validator_answers", dimensions: [("verdict", "unknown")])
    /// Those that were not valid, for consoles: reports carry figures without labels alone.
    private let failures = Counter(label: "mss_validator_failures")

    /// Counts one answer.
    func count(_ outcome: CheckOutcome) {
        if case .valid = outcome {} else { failures.increment() }
        switch outcome {
        case .valid: valid.increment()
        case .invalid: invalid.increment()
        case .unknown, .noAnswer: unknown.increment()
        }
    }
}
