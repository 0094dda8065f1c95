import Foundation
import TestSupport

/// The report of one run of `mssctl conformance`.
struct ConformanceRun: Decodable {
    struct Item: Decodable {
        let name: String
        let verdict: String
        let seen: String
    }

    let cases: [Item]
    var failures: [String] { cases.filter { $0.verdict != "pass" }.map { "\($0.name): \($0.seen)" } }
    var failedNames: Set<String> { Set(cases.filter { $0.verdict != "pass" }.map(\.name)) }

    /// Runs the tool, whose arguments must ask for JSON.
    static func of(_ stack: Stack, _ arguments: [String]) async throws -> Self {
        let outcome = try await stack.tool(["conformance"] + arguments)
        let line = outcome.output.split(separator: "\n").last { $0.hasPrefix("{") }
        return try JSONDecoder().decode(
            Self.self, from: Data(try requireValue(line, "no report: \(outcome.output)").utf8))
    }
}
