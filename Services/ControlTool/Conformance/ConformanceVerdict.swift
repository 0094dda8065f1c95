/// What came of one case.
enum ConformanceVerdict: Hashable, Sendable {
    case passed
    /// With what was expected and seen.
    case failed(String)
    /// With what is missing.
    case unsupported(String)

    /// The word in tables and JSON.
    var word: String {
        switch self {
        case .passed: "pass"
        case .failed: "FAIL"
        case .unsupported: "not supported"
        }
    }

    /// What was seen; empty after success.
    var seen: String {
        switch self {
        case .passed: ""
        case .failed(let seen), .unsupported(let seen): seen
        }
    }
}
