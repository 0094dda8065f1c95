import SyncModel
import SyncStore

/// What the overview of an instance shows (spec C1).
struct OverviewFigures: Encodable, Sendable {
    /// A process of the service.
    struct Process: Encodable, Sendable {
        let service: String
        let version: String
        let ready: Bool
        /// Milliseconds since 1970.
        let startedAt: Int64
        /// What is missing for it to be ready.
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
        /// The name of a line, and which it is.
        struct Name: Sendable {
            let number: Int
            let name: String
        }

        let id: String
        let title: String
        let svg: String
        let lines: [Name]
        let rows: [LineChart.Row]

        init(_ chart: LineChart, _ words: Words) {
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
        /// Absent: the figures do not reach so far yet.
        let pushes: Int64?
        let arrivals: Int64?
        /// At its end: accepted in the last 30 days and not arrived.
        let backlog: Int64?
        /// Absent: no gateway spoke of it.
        let connected: Int64?
        /// Milliseconds from accept to arrival.
        let p50: Double?
        let p99: Double?
    }

    /// Some seconds ago at the most, where gateways report; else when the newest minute began.
    let connected: Int64
    /// Within the range.
    let pushes: Int64
    let arrivals: Int64
    /// Milliseconds from accept to arrival within the range; absent: nothing arrived.
    let p50: Double?
    let p99: Double?
    /// Accepted in the last 30 days and not arrived.
    let backlog: Int64
    let deadLetters: Int64
    /// Questions to tenants since the validators' start that ended without a valid verdict.
    let verdictFailures: Int64
    /// Seconds that the figures are behind; absent: no aggregator has run.
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

    /// How many had not arrived at the end of each step, read back from how many there are now: a step ends with what
    /// the next one begins with; pure.
    ///
    /// - Parameter changes: accepted less arrived in each step, the oldest first.
    static func backlogs(now: Int64, changes: [Int64]) -> [Int64] {
        var backlog = now
        return changes.reversed().map { change in
            defer { backlog -= change }
            // What is older than 30 days has left the figure, what arrived of it has not.
            return max(0, backlog)
        }.reversed()
    }

    /// A time in few letters: 12 ms, 3.4 s, 2 h.
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
