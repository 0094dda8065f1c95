import DeliveryHistory
import Foundation

/// Resident bytes by process, before and after a torture run.
struct ResidentMemory: Hashable, Sendable {
    var before: [String: Int] = [:]
    var after: [String: Int] = [:]
}

/// The results of a torture run.
struct TortureReport: Sendable {
    let plan: TortureRun.Plan
    var length = Duration.zero
    var counts = HistoryCounts()
    var rounds = FaultRounds()
    var tally: [String: Int] = [:]
    var memory = ResidentMemory()
    var operations = OperationChecker()
    /// Offset of the database clock to the clock of the harness.
    var clockError = Duration.zero
    /// Number of responses that were compared with the times of open sessions.
    var judgedAnswers = 0
    var faults: [HistoryFault] = []
    var faultCount = 0
    /// Faults that could not be injected or healed, with the reasons.
    var complaints: [String] = []

    init(plan: TortureRun.Plan) { self.plan = plan }

    var isPassed: Bool { faultCount == 0 }

    /// Adds the results on device operations.
    mutating func add(_ operations: OperationChecker) {
        self.operations = operations
        faults += operations.faults
        faultCount += operations.faultCount
    }

    /// Adds the results on the presence of devices.
    mutating func add(_ presence: PresenceChecker) {
        judgedAnswers = presence.judged
        faults += presence.faults
        faultCount += presence.faultCount
    }

    /// The report as Markdown.
    var text: String {
        let command =
            "mssctl torture --minutes \(plan.minutes) --rounds \(plan.rounds) --seed \(plan.seed)"
            + " --devices \(plan.devices) --rate \(plan.rate) --operations \(plan.operations)"
            + (plan.java.map { " --java \($0)" } ?? "")
        var lines = [
            "# Torture: \(isPassed ? "no guarantee was violated" : "\(faultCount) VIOLATIONS")", "",
            "`\(command)`, \(Self.seconds(length)) s in all.", "",
            "| | |", "|---|---:|",
            "| pushes answered with success | \(counts.answeredPushes) |",
            "| hand-outs to apps, including those after omitted confirmations | \(counts.handOuts) |",
            "| repeated hand-outs | \(counts.repeatedHandOuts) |",
            "| device operations, each executed once and in order, each with its result | \(operations.told) |",
            "| repeated calls to the tenant | \(operations.repeatedCalls) |",
            "| responses compared with the open sessions of devices | \(judgedAnswers) |",
            "| offset of the database clock to the harness | \(Self.seconds(clockError)) s |",
            "| faults injected | \(rounds.injections.values.reduce(0) { $0 + $1.count }) |",
            "| kinds of faults | \(rounds.injections.count) |",
            "| rounds of faults, each healed before the next | \(rounds.count) |",
        ]
        let lags = rounds.lags.sorted()
        if let longest = lags.last {
            let median = lags[lags.count / 2]
            lines.append(
                "| time to catch up: median, longest | \(Self.seconds(median)) s, \(Self.seconds(longest)) s |")
        }
        lines += tally.sorted { $0.key < $1.key }.map { "| \($0.key) | \($0.value) |" }
        lines += ["", "| fault | injected | longest time to catch up, s |", "|---|---:|---:|"]
        lines += rounds.injections.sorted { $0.key.name < $1.key.name }.map {
            "| \($0.key.name) | \($0.value.count) | \(Self.seconds($0.value.longestLag)) |"
        }
        lines += ["", "| process | resident before, MB | after, MB |", "|---|---:|---:|"]
        lines += memory.after.sorted { $0.key < $1.key }.map {
            "| \($0.key) | \(Self.megabytes(memory.before[$0.key] ?? 0)) | \(Self.megabytes($0.value)) |"
        }
        if !faults.isEmpty { lines += ["", "The first violations:", ""] + faults.map { "- \($0)" } }
        if !complaints.isEmpty {
            lines += ["", "Faults that could not be injected or healed:", ""] + complaints.map { "- \($0)" }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// A time in seconds, with one decimal.
    static func seconds(_ duration: Duration) -> String { String(format: "%.1f", duration / .seconds(1)) }

    private static func megabytes(_ bytes: Int) -> String { String(format: "%.1f", Double(bytes) / 1_000_000) }
}
