import Foundation

/// The result of a run, as table and JSON.
struct ConformanceReport: Sendable {
    let results: [ConformanceResult]
    let allowsUnsupported: Bool

    private struct Line: Encodable {
        let name: String
        let rule: String
        let verdict: String
        let seen: String
        let milliseconds: Int64
    }

    private struct Document: Encodable {
        let passed: Int
        let failed: Int
        let unsupported: Int
        let cases: [Line]
    }

    /// Whether all cases passed, apart from permitted unsupported ones.
    var isPassed: Bool { failed == 0 && (allowsUnsupported || unsupported == 0) && !results.isEmpty }

    private var passed: Int { results.count { $0.verdict == .passed } }
    private var failed: Int { results.count { if case .failed = $0.verdict { true } else { false } } }
    private var unsupported: Int { results.count - passed - failed }

    /// One line per case and a summary.
    var table: String {
        let width = results.map(\.name.count).max() ?? 0
        let lines = results.map { result in
            let word = result.verdict.word.padding(toLength: 13, withPad: " ", startingAt: 0)
            let name = result.name.padding(toLength: width, withPad: " ", startingAt: 0)
            let tail = result.verdict == .passed ? "" : ": \(result.verdict.seen)"
            return "\(word)  \(name)  [\(result.rule)]\(tail)"
        }
        return (lines + ["\(passed) passed, \(failed) failed, \(unsupported) not supported"]).joined(separator: "\n")
    }

    /// One JSON object: the counts, and for each case name, rule, verdict (pass, FAIL, not supported), seen and
    /// milliseconds.
    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let lines = results.map { result in
            let parts = result.took.components
            return Line(
                name: result.name, rule: result.rule, verdict: result.verdict.word, seen: result.verdict.seen,
                milliseconds: parts.seconds * 1_000 + parts.attoseconds / 1_000_000_000_000_000)
        }
        let document = Document(passed: passed, failed: failed, unsupported: unsupported, cases: lines)
        return String(decoding: try encoder.encode(document), as: UTF8.self)
    }
}
