import AMQP
import BusMessages
import ServiceKit
import SyncModel

/// Evaluates the reports of processes and the depths of queues. It does no I/O.
struct ServiceDiagnosis {
    /// A received report.
    struct Heard {
        let report: ProcessReport
        /// Offset of the process's clock to the tool's clock. Negative if it is behind. The value is nil if the report
        /// contains no
        /// time.
        let ahead: Duration?
    }

    /// Required services, and the effect of their absence.
    private static let needed = [
        ("mss-ingest", "no push is accepted"), ("mss-oplog-writer", "no push is stored or delivered"),
        ("mss-gateway", "no device can connect"), ("mss-session-validator", "checked data is withheld"),
        ("mss-relay", "device operations wait on the devices"),
        ("mss-statistics", "figures are not updated"), ("mss-console", "no operator can sign in"),
    ]
    /// Optional services.
    private static let optional = ["mss-notifier"]
    /// Largest offset of a machine with a synchronized clock.
    static let clockLimit = Duration.seconds(1)
    private static let certificateLimit = Duration.seconds(14 * 86_400)
    private static let backlogLimit = 1_000

    let heard: [Heard]
    /// Queue depths by name. The failure of the broker otherwise.
    let queues: Result<[String: AMQPQueueDepth], BusError>
    let now: WallTime

    /// All findings, including positive ones.
    var findings: [Finding] {
        [.ok("broker", "RabbitMQ accepts the connection")] + processes + unready
            + [versions, clocks, control, certificates].compactMap { $0 } + losses + backlogs
    }

    private var reports: [ProcessReport] { heard.map(\.report) }

    private var processes: [Finding] {
        let missing = Self.needed.filter { service, _ in !reports.contains { $0.service == service } }
        let counts = (Self.needed.map(\.0) + Self.optional).compactMap { service -> String? in
            let count = reports.count { $0.service == service }
            return count == 0 ? nil : "\(count) \(service)"
        }
        return [.ok("processes", counts.isEmpty ? "none" : counts.joined(separator: ", "))]
            + missing.map { service, loss in
                .problem(
                    service, "no process reports: \(loss)",
                    "start one; if one runs, its log shows why it does not reach RabbitMQ")
            }
    }

    private var unready: [Finding] {
        reports.filter { !$0.isReady }.map { report in
            let missing = report.conditions.filter { !$0.value }.map(\.key).sorted()
            let name = "the process of \(report.startedAt.text)"
            if missing == ["running"] {
                return .warning(report.service, "\(name) drains", "it ends within 30 s")
            }
            return .problem(
                report.service, "\(name) is not ready: missing: \(missing.joined(separator: ", "))",
                "see its log; amqp and postgres are its connections, control is its copy of the configurations")
        }
    }

    private var versions: Finding? {
        let all = Set(reports.map(\.version)).sorted()
        guard let first = all.first else { return nil }
        if all.count == 1 { return .ok("versions", "all processes have \(first)") }
        return .warning(
            "versions", "different versions: \(all.joined(separator: ", "))",
            "expected during an upgrade; otherwise replace the old processes")
    }

    private var clocks: Finding? {
        let told = heard.compactMap { one in one.ahead.map { (one.report, $0) } }
        guard let furthest = told.max(by: { Self.abs($0.1) < Self.abs($1.1) }) else { return nil }
        let text = "\(furthest.0.service) of \(furthest.0.startedAt.text) is \(Self.text(furthest.1)) this machine's"
        if Self.abs(furthest.1) <= Self.clockLimit { return .ok("clocks", "largest offset: \(text)") }
        return .warning(
            "clocks", text,
            "synchronize all clocks (NTP): validity, signatures and figures depend on them, leases do not"
        )
    }

    private var control: Finding? {
        let versions = Set(reports.compactMap { $0.figures["mss_control_version"] })
        guard let newest = versions.max() else { return nil }
        if versions.count == 1 { return .ok("control", "all processes have version \(Int(newest))") }
        return .warning(
            "control", "some processes have version \(Int(versions.min() ?? 0)), some \(Int(newest))",
            "a change needs up to a second: repeat the check; a process that stays behind cannot reach the writers")
    }

    private var certificates: Finding? {
        let ends = reports.compactMap { report in
            report.figures["mss_tls_certificate_expiry_seconds"].map { (report.service, $0) }
        }
        guard let first = ends.min(by: { $0.1 < $1.1 }) else { return nil }
        let end = WallTime(milliseconds: Int64(first.1) * 1_000)
        let text = "the first certificate, of \(first.0), ends \(end.text)"
        if now + Self.certificateLimit < end { return .ok("certificates", text) }
        let advice = "replace its file: the process loads it within two seconds"
        return end < now ? .problem("certificates", text, advice) : .warning("certificates", text, advice)
    }

    /// Counters that must stay zero.
    private var losses: [Finding] {
        let counters = [
            (
                "mss_bus_answers_refused_total", "dropped replies that arrived on an unexpected exchange",
                "another tier's RabbitMQ password may be known: find the sender, and change the password"
            ),
            (
                "mss_gateway_notices_refused_total", "dropped notices from an unauthorized exchange",
                "another tier's RabbitMQ password may be known: find the sender, and change the password"
            ),
            (
                "mss_gateway_facts_dropped_total", "dropped facts",
                "RabbitMQ was unavailable for long: figures are too low, pushes are not affected"
            ),
        ]
        return counters.flatMap { name, text, advice in
            reports.compactMap { report in
                guard let count = report.figures[name], count > 0 else { return nil }
                return .warning(report.service, "\(Int(count)) \(text)", advice)
            }
        }
    }

    private var backlogs: [Finding] {
        let all: [(key: String, value: AMQPQueueDepth)]
        switch queues {
        case .success(let depths): all = depths.sorted { $0.key < $1.key }
        case .failure(let error):
            return [
                .warning(
                    "queues", "cannot read the queue depths: \(error.description)",
                    "if the broker refused it, load definitions.json of this build; RabbitMQ 4.2.6 and 4.3.0 always "
                        + "refuse it: update them")
            ]
        }
        var findings: [Finding] = []
        for (name, depth) in all {
            if name == Topology.deadFactsQueue {
                guard depth.messages > 0 else { continue }
                findings.append(
                    .warning(
                        name, "\(depth.messages) rejected facts", "keep them: a newer build may be able to read them"))
            } else if depth.consumers == 0 {
                findings.append(
                    .problem(name, "no consumer", "start its consumer; see deploy/manual/Rights.md"))
            } else if depth.messages > Self.backlogLimit {
                findings.append(
                    .warning(
                        name, "\(depth.messages) messages wait",
                        "repeat the check; if the number stays high, add consumers"))
            }
        }
        return findings.isEmpty ? [.ok("queues", "\(all.count) queues, no backlog")] : findings
    }

    private static func abs(_ duration: Duration) -> Duration { duration < .zero ? .zero - duration : duration }

    private static func text(_ ahead: Duration) -> String {
        "\(abs(ahead).wholeMilliseconds) ms \(ahead < .zero ? "behind" : "ahead of")"
    }
}
