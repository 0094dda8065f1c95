/// The outcome of one case.
enum ConformanceVerdict: Hashable, Sendable {
    case passed
    /// With the expected and the actual behaviour.
    case failed(String)
    /// With the missing feature.
    case unsupported(String)

    /// Text in tables and JSON.
    var word: String {
        switch self {
        case .passed: "pass"
        case .failed: "FAIL"
        case .unsupported: "not supported"
        }
    }

    /// The actual behaviour. Empty after success.
    var seen: String {
        switch self {
        case .passed: ""
        case .failed(let seen), .unsupported(let seen): seen
        }
    }
}
