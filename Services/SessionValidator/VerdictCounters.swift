import Metrics

/// How many questions were answered, by verdict.
struct VerdictCounters: Sendable {
    private let valid = Counter(label: "mss_validator_answers", dimensions: [("verdict", "valid")])
    private let invalid = Counter(label: "mss_validator_answers", dimensions: [("verdict", "invalid")])
    private let unknown = Counter(label: "mss_validator_answers", dimensions: [("verdict", "unknown")])

    /// Counts one answer.
    func count(_ outcome: CheckOutcome) {
        switch outcome {
        case .valid: valid.increment()
        case .invalid: invalid.increment()
        case .unknown, .noAnswer: unknown.increment()
        }
    }
}
