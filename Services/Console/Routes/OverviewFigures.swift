import SyncModel
import SyncStore

/// The figures on the overview of an instance (C1).
struct OverviewFigures: Encodable, Sendable {
    /// A process of the service.
    struct Process: Encodable, Sendable {
        let service: String
        let version: String
        let ready: Bool
        /// Milliseconds since 1970.
        let startedAt: Int64
        /// The conditions that the process lacks to be ready.
        let missing: [String]

        // For pages alone.
        let startedText: String
        let missingText: String

        private enum CodingKeys: String, CodingKey { case service, version, ready, startedAt, missing }
    }

    /// A queue between processes.
    struct Queue: Encodable, Sendable {
        let name: String
        let waiting: Int
        let consumers: Int
        // For pages alone.
        let isBad: Bool
        private enum CodingKeys: String, CodingKey { case name, waiting, consumers }
    }

    /// A chart, drawn and as a table.
    struct Chart: Sendable {
        /// The number and the name of a line.
        struct Name: Sendable {
            let number: Int
            let name: String
        }

        let id: String
        let title: String
        let svg: String
        let lines: [Name]
        let rows: [LineChart.Row]

        init(_ chart: LineChart, _ words: PageTexts) {
            id = chart.id
            title = chart.title
            svg = chart.svg(words)
            lines = chart.lines.enumerated().map { Name(number: $0.offset + 1, name: $0.element.name) }
            rows = chart.rows
        }
    }

    /// A step of the charts.
    struct Step: Encodable, Sendable {
        let at: Int64
        /// Absent: the statistics have not counted this step yet.
        let pushes: Int64?
        let arrivals: Int64?
        /// At the end of the step: pushes of the last 30 days that have not arrived.
        let backlog: Int64?
        /// Absent: no gateway has reported.
        let connected: Int64?
        /// Milliseconds from accept to arrival.
        let p50: Double?
        let p99: Double?
    }

    /// Connected devices: a few seconds old when gateways report, otherwise of the start of the newest minute.
    let connected: Int64
    /// Pushes and arrivals within the range.
    let pushes: Int64
    let arrivals: Int64
    /// Milliseconds from accept to arrival within the range; absent: nothing arrived.
    let p50: Double?
    let p99: Double?
    /// Pushes of the last 30 days that have not arrived.
    let backlog: Int64
    let deadLetters: Int64
    /// Session checks without a valid verdict since the start of the validators.
    let verdictFailures: Int64
    /// The delay of the statistics in seconds; absent: no aggregator has run.
    let lagSeconds: Double?
    let steps: [Step]
    let processes: [Process]
    let queues: [Queue]

    // For pages alone.
    let p50Text: String
    let p99Text: String
    let lagText: String
    let isLate: Bool
    let hasDeadLetters: Bool
    let charts: [Chart]
    let updatedAt: Int64
    let updatedText: String

    private enum CodingKeys: String, CodingKey {
        case connected, pushes, arrivals, p50, p99, backlog, deadLetters, verdictFailures, lagSeconds, steps, processes
        case queues
    }

    /// The pushes that had not arrived at the end of each step, computed backwards from the current number; pure.
    ///
    /// - Parameter changes: accepted minus arrived pushes of each step, the oldest first.
    static func backlogs(now: Int64, changes: [Int64]) -> [Int64] {
        var backlog = now
        return changes.reversed().map { change in
            defer { backlog -= change }
            // Pushes older than 30 days are not in `now`, but their arrivals are in `changes`.
            return max(0, backlog)
        }.reversed()
    }

    /// A short form of a time: 12 ms, 3.4 s, 2 h.
    static func text(milliseconds: Double?) -> String {
        guard let milliseconds else { return "–" }
        return switch milliseconds {
        case ..<1_000: "\(Int(milliseconds.rounded())) ms"
        case ..<90_000: "\((milliseconds / 100).rounded() / 10) s"
        case ..<5_400_000: "\(Int((milliseconds / 60_000).rounded())) min"
        default: "\((milliseconds / 360_000).rounded() / 10) h"
        }
    }
}
