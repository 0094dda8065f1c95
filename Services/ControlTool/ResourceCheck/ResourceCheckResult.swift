/// The result of one check of a backend.
struct ResourceCheckResult: Sendable, Hashable {
    /// The behaviour that offline resources need.
    let rule: String
    /// The difference and the remedy; nil: the backend behaves so.
    let problem: String?

    /// One line for the terminal.
    var line: String { problem.map { "missing  \(rule): \($0)" } ?? "ok       \(rule)" }
}
