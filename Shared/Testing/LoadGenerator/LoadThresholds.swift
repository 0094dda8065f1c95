import ArgumentParser
import Foundation

/// Limits of counts, and the load for which they hold (`deploy/thresholds.json`).
struct LoadThresholds: Hashable, Sendable, Codable {
    /// The limit of one count.
    struct Limit: Hashable, Sendable, Codable {
        /// A run with a higher count fails.
        var ceiling: Double
        /// The median when the limit was set.
        var measured: Double
    }

    /// Limits next to the measured counts.
    struct Comparison: Hashable, Sendable {
        /// The comparison as text. Counts above their limits come last.
        let text: String
        let isWithin: Bool
    }

    /// Margin of a limit above the median, in percent.
    static let marginPercent = 20.0
    /// Lower counts have no limit: they come from timers, not from pushes.
    static let least = 0.05

    /// Scenario file, relative to the root of the project.
    let scenario: String
    /// Limits by build (`debug` and `release` allocate differently), then by count.
    var ceilings: [String: [String: Limit]]

    /// Reads the file.
    static func read(_ file: String) throws -> LoadThresholds {
        guard let data = FileManager.default.contents(atPath: file),
            let thresholds = try? JSONDecoder().decode(LoadThresholds.self, from: data)
        else {
            throw ValidationError("\(file) is not a readable JSON object with scenario and ceilings")
        }
        return thresholds
    }

    /// The content of the file.
    func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self) + Data("\n".utf8)
    }

    /// Sets the limits of a build from several runs.
    mutating func set(_ runs: [[String: Double]], of build: String) {
        let names = Set(runs.flatMap(\.keys))
        ceilings[build] = names.reduce(into: [:]) { limits, name in
            let values = runs.compactMap { $0[name] }.sorted()
            let median = values[values.count / 2]
            guard median >= Self.least else { return }
            limits[name] = Limit(
                ceiling: Self.rounded(median * (1 + Self.marginPercent / 100)), measured: Self.rounded(median))
        }
    }

    /// Compares counts with limits. A limit without a measured count is exceeded too, so that no count can disappear
    /// unnoticed.
    func compare(_ figures: [String: Double], of build: String) -> Comparison {
        let limits = ceilings[build] ?? [:]
        var rows: [[String]] = []
        var above: [[String]] = []
        for (name, limit) in limits.sorted(by: { $0.key < $1.key }) {
            let figure = figures[name]
            let isWithin = figure.map { $0 <= limit.ceiling } ?? false
            let row = [
                name, figure.map { Self.text($0) } ?? "not measured", Self.text(limit.ceiling),
                Self.text(limit.measured), isWithin ? "" : "ABOVE",
            ]
            if isWithin { rows.append(row) } else { above.append(row) }
        }
        let head = ["\(build) build", "now", "ceiling", "when set", ""]
        let verdict =
            limits.isEmpty ? "no ceilings for this build" : above.isEmpty ? "within all ceilings" : "above a ceiling"
        return Comparison(
            text: (LoadText.table([head] + rows + above) + [verdict]).joined(separator: "\n"),
            isWithin: above.isEmpty && !limits.isEmpty)
    }

    private static func text(_ value: Double) -> String { LoadText.number(value, decimals: value < 100 ? 2 : 0) }

    /// Three decimals for small numbers, none for large ones, so that the file stays readable.
    private static func rounded(_ value: Double) -> Double {
        value < 100 ? (value * 1_000).rounded() / 1_000 : value.rounded()
    }
}
