import AMQP
import BusMessages
import ServiceKit
import SyncModel

/// What processes report and how queues stand, judged; pure.
struct ServiceDiagnosis {
    /// A process as it was heard.
    struct Heard {
        let report: ProcessReport
        /// Its clock before the tool's, where it said what time it is; negative: behind.
        let ahead: Duration?
    }

    /// What a service is called, and what does not happen without it.
    private static let needed = [
        ("mss-ingest", "no push is taken"), ("mss-oplog-writer", "nothing is stored or handed out"),
        ("mss-gateway", "no device can connect"), ("mss-session-validator", "checked data is withheld"),
        ("mss-relay", "operations of devices wait on them"),
        ("mss-statistics", "figures stand still"), ("mss-console", "nobody can sign in to it"),
    ]
    /// Services that an installation may do without.
    private static let optional = ["mss-notifier"]
    /// Clocks that differ by more than this belong to no machine whose time is kept.
    static let clockLimit = Duration.seconds(1)
    private static let certificateLimit = Duration.seconds(14 * 86_400)
    private static let backlogLimit = 1_000

    let heard: [Heard]
    /// The failure: why the broker did not count them.
    let queues: Result<[String: AMQPQueueDepth], BusError>
    let now: WallTime

    /// Everything that there is to say, problems and what is well.
    var findings: [Finding] {
        [.ok("broker", "RabbitMQ lets us in")] + processes + unready
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
                    service, "none is there: \(loss)",
                    "start one; where one runs, its log says why it does not reach RabbitMQ")
            }
    }

    private var unready: [Finding] {
        reports.filter { !$0.isReady }.map { report in
            let missing = report.conditions.filter { !$0.value }.map(\.key).sorted()
            let name = "the one of \(report.startedAt.text)"
            if missing == ["running"] {
                return .warning(report.service, "\(name) drains", "it ends within half a minute")
            }
            return .problem(
                report.service, "\(name) is not ready: it lacks \(missing.joined(separator: ", "))",
                "its log says why; amqp and postgres are its connections, control its copy of the configurations")
        }
    }

    private var versions: Finding? {
        let all = Set(reports.map(\.version)).sorted()
        guard let first = all.first else { return nil }
        if all.count == 1 { return .ok("versions", "all are \(first)") }
        return .warning(
            "versions", "there are \(all.joined(separator: ", "))",
            "during an upgrade that is as it should be; otherwise replace the old ones")
    }

    private var clocks: Finding? {
        let told = heard.compactMap { one in one.ahead.map { (one.report, $0) } }
        guard let furthest = told.max(by: { Self.abs($0.1) < Self.abs($1.1) }) else { return nil }
        let text = "\(furthest.0.service) of \(furthest.0.startedAt.text) is \(Self.text(furthest.1)) this machine's"
        if Self.abs(furthest.1) <= Self.clockLimit { return .ok("clocks", "the furthest, \(text)") }
        return .warning(
            "clocks", text, "keep every machine's time (NTP): validity, signatures and figures go by it, leases do not")
    }

    private var control: Finding? {
        let versions = Set(reports.compactMap { $0.figures["mss_control_version"] })
        guard let newest = versions.max() else { return nil }
        if versions.count == 1 { return .ok("control", "all go by version \(Int(newest))") }
        return .warning(
            "control", "some go by version \(Int(versions.min() ?? 0)), some by \(Int(newest))",
            "a change travels for a second at most: look again; who stays behind cannot ask the writers")
    }

    private var certificates: Finding? {
        let ends = reports.compactMap { report in
            report.figures["mss_tls_certificate_expiry_seconds"].map { (report.service, $0) }
        }
        guard let first = ends.min(by: { $0.1 < $1.1 }) else { return nil }
        let end = WallTime(milliseconds: Int64(first.1) * 1_000)
        let text = "the first one, of \(first.0), ends \(end.text)"
        if now + Self.certificateLimit < end { return .ok("certificates", text) }
        let advice = "put a new one in its file's place: it is taken within two seconds"
        return end < now ? .problem("certificates", text, advice) : .warning("certificates", text, advice)
    }

    /// Counters that should never move.
    private var losses: [Finding] {
        let counters = [
            (
                "mss_bus_answers_refused_total", "answers came from who was not asked",
                "somebody has another tier's password of RabbitMQ: find out who, and change it"
            ),
            (
                "mss_gateway_notices_refused_total", "notices came from who may not send them",
                "somebody has another tier's password of RabbitMQ: find out who, and change it"
            ),
            (
                "mss_gateway_facts_dropped_total", "facts for figures were dropped",
                "RabbitMQ was away for long: figures lack them, pushes do not"
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
                    "queues", "they could not be counted: \(error.description)",
                    "where the broker refused it, load definitions.json of this build; RabbitMQ 4.2.6 and 4.3.0 refuse "
                        + "it always: update them")
            ]
        }
        var findings: [Finding] = []
        for (name, depth) in all {
            if name == Topology.deadFactsQueue {
                guard depth.messages > 0 else { continue }
                findings.append(
                    .warning(
                        name, "\(depth.messages) messages could not be read", "a newer build may read them: keep them"))
            } else if depth.consumers == 0 {
                findings.append(
                    .problem(name, "nobody takes from it", "start who does: deploy/README.md, Who may do what"))
            } else if depth.messages > Self.backlogLimit {
                findings.append(
                    .warning(
                        name, "\(depth.messages) messages wait", "look again; if it stays, add processes of who takes"))
            }
        }
        return findings.isEmpty ? [.ok("queues", "\(all.count) are there, none is behind")] : findings
    }

    private static func abs(_ duration: Duration) -> Duration { duration < .zero ? .zero - duration : duration }

    private static func text(_ ahead: Duration) -> String {
        "\(abs(ahead).wholeMilliseconds) ms \(ahead < .zero ? "behind" : "ahead of")"
    }
}
