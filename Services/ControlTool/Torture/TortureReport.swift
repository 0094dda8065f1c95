import DeliveryHistory
import Foundation

/// What a torture run did and found, for a person to read.
struct TortureReport: Sendable {
    /// How often a kind of fault was injected, and how long the service then took to have caught up.
    struct Injections: Hashable, Sendable {
        var count = 0
        /// The longest after a round with it, whatever else was in that round.
        var longestLag = Duration.zero
    }

    let plan: TortureRun.Plan
    var length = Duration.zero
    var pushes = 0
    var handOuts = 0
    var repeatedHandOuts = 0
    var rounds = 0
    var injections: [FaultKind: Injections] = [:]
    var lags: [Duration] = []
    var tally: [String: Int] = [:]
    /// Resident bytes by process.
    var memoryBefore: [String: Int] = [:]
    var memoryAfter: [String: Int] = [:]
    var operations = OperationChecker()
    /// How far the database's clock was ahead of that of the harness.
    var clockError = Duration.zero
    /// Answers that were compared with the times in which devices held open sessions.
    var judgedAnswers = 0
    var faults: [HistoryFault] = []
    var faultCount = 0
    /// Faults that could not be injected or healed, and why.
    var complaints: [String] = []

    init(plan: TortureRun.Plan) { self.plan = plan }

    var isPassed: Bool { faultCount == 0 }

    /// Notes what became of operations.
    mutating func add(_ operations: OperationChecker) {
        self.operations = operations
        faults += operations.faults
        faultCount += operations.faultCount
    }

    /// Notes what answers said of the presence of devices.
    mutating func add(_ presence: PresenceChecker) {
        judgedAnswers = presence.judged
        faults += presence.faults
        faultCount += presence.faultCount
    }

    /// Notes a round and how long the service took to catch up after it.
    mutating func add(_ round: [FaultSchedule.Planned], lag: Duration) {
        rounds += 1
        lags.append(lag)
        for fault in round {
            var entry = injections[fault.kind] ?? Injections()
            entry.count += 1
            entry.longestLag = max(entry.longestLag, lag)
            injections[fault.kind] = entry
        }
    }

    /// The report as Markdown.
    var text: String {
        let command =
            "mssctl torture --minutes \(plan.minutes) --seed \(plan.seed) --devices \(plan.devices) --rate \(plan.rate)"
            + " --operations \(plan.operations)"
        var lines = [
            "# Torture: \(isPassed ? "every promise was kept" : "\(faultCount) BROKEN PROMISES")", "",
            "`\(command)`, \(Self.seconds(length)) s in all.", "",
            "| | |", "|---|---:|",
            "| pushes answered with success | \(pushes) |",
            "| hand-outs to apps, those of forgotten confirmations included | \(handOuts) |",
            "| of them repeated | \(repeatedHandOuts) |",
            "| operations of devices, each done once and in order, each with its result | \(operations.told) |",
            "| calls of the tenant that repeated one | \(operations.repeatedCalls) |",
            "| answers compared with the open sessions of devices | \(judgedAnswers) |",
            "| clock of the database ahead of that of the harness | \(Self.seconds(clockError)) s |",
            "| faults injected | \(injections.values.reduce(0) { $0 + $1.count }) |",
            "| kinds of faults | \(injections.count) |",
            "| rounds of faults, each healed and caught up before the next | \(rounds) |",
        ]
        let sorted = lags.sorted()
        if let longest = sorted.last {
            let median = sorted[sorted.count / 2]
            lines.append(
                "| caught up after a heal: median, longest | \(Self.seconds(median)) s, \(Self.seconds(longest)) s |")
        }
        lines += tally.sorted { $0.key < $1.key }.map { "| \($0.key) | \($0.value) |" }
        lines += ["", "| fault | injected | longest until caught up, s |", "|---|---:|---:|"]
        lines += injections.sorted { $0.key.name < $1.key.name }.map {
            "| \($0.key.name) | \($0.value.count) | \(Self.seconds($0.value.longestLag)) |"
        }
        lines += ["", "| process | resident before, MB | after, MB |", "|---|---:|---:|"]
        lines += memoryAfter.sorted { $0.key < $1.key }.map {
            "| \($0.key) | \(Self.megabytes(memoryBefore[$0.key] ?? 0)) | \(Self.megabytes($0.value)) |"
        }
        if !faults.isEmpty { lines += ["", "Broken promises, the first of them:", ""] + faults.map { "- \($0)" } }
        if !complaints.isEmpty {
            lines += ["", "Faults that could not be injected:", ""] + complaints.map { "- \($0)" }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func seconds(_ duration: Duration) -> String { String(format: "%.1f", duration / .seconds(1)) }

    private static func megabytes(_ bytes: Int) -> String { String(format: "%.1f", Double(bytes) / 1_000_000) }
}
