import AMQP
import SyncModel
import Testing

@testable import ControlTool
@testable import ServiceKit

@Suite("Findings of the doctor") struct DoctorDiagnosisTests {
    private static let services = [
        "mss-ingest", "mss-oplog-writer", "mss-gateway", "mss-session-validator", "mss-relay", "mss-statistics",
        "mss-console",
    ]
    private static let now = WallTime(milliseconds: 1_790_000_000_000)

    private static func report(_ service: String) -> ProcessReport {
        ProcessReport(
            service: service, processID: service, version: "1.0", startedAt: WallTime(milliseconds: 0), isReady: true,
            conditions: ["amqp": true, "running": true],
            figures: ["mss_control_version": 7, "mss_tls_certificate_expiry_seconds": 1_800_000_000])
    }

    /// The findings for a healthy service with the changes of the closures.
    private static func findings(
        without missing: String? = nil, ahead: Duration = .zero, queues: [String: AMQPQueueDepth] = [:],
        uncounted: BusError? = nil,
        changing service: String = "mss-gateway", _ change: (inout ProcessReport) -> Void = { _ in }
    ) -> [Finding] {
        let heard = services.filter { $0 != missing }.map { name in
            var report = report(name)
            if name == service { change(&report) }
            return ServiceDiagnosis.Heard(report: report, ahead: name == service ? ahead : .zero)
        }
        let all = [
            "mss.append": AMQPQueueDepth(messages: 0, consumers: 2), "mss.facts.dead": .init(messages: 0, consumers: 0),
        ]
        let counted = uncounted.map { Result.failure($0) } ?? .success(all.merging(queues) { $1 })
        return ServiceDiagnosis(heard: heard, queues: counted, now: now).findings
    }

    /// Subjects and grades of all findings that are not good.
    private static func complaints(_ findings: [Finding]) -> [String] {
        findings.filter { $0.grade != .ok }.map { "\($0.grade) \($0.subject)" }
    }

    @Test("a healthy service has no finding") func well() {
        let findings = Self.findings()
        #expect(Self.complaints(findings).isEmpty)
        #expect(
            findings.map(\.subject) == [
                "broker", "processes", "versions", "clocks", "control", "certificates", "queues",
            ])
        #expect(findings[1].text == Self.services.map { "1 \($0)" }.joined(separator: ", "))
    }

    @Test("missing, unready, old, differing and slow processes are findings; a draining one is not")
    func processes() {
        for service in Self.services {
            #expect(Self.complaints(Self.findings(without: service)) == ["problem \(service)"])
            let unready = Self.findings(changing: service) {
                $0.isReady = false
                $0.conditions = ["amqp": true, "postgres": false, "control": false]
            }
            #expect(Self.complaints(unready) == ["problem \(service)"])
            #expect(unready[2].text.contains("missing: control, postgres"))
        }
        let draining = Self.findings {
            $0.isReady = false
            $0.conditions["running"] = false
        }
        #expect(Self.complaints(draining) == ["warning mss-gateway"])
        #expect(Self.complaints(Self.findings { $0.version = "0.9" }) == ["warning versions"])
        #expect(Self.complaints(Self.findings { $0.figures["mss_control_version"] = 6 }) == ["warning control"])
        for ahead in [-1_001, 1_001, 86_400_000] {
            #expect(Self.complaints(Self.findings(ahead: .milliseconds(ahead))) == ["warning clocks"])
        }
        #expect(Self.complaints(Self.findings(ahead: .milliseconds(-1_000))).isEmpty)
    }

    @Test("a certificate is a finding from two weeks before its end") func certificates() {
        func grade(_ days: Int) -> [String] {
            Self.complaints(
                Self.findings {
                    $0.figures["mss_tls_certificate_expiry_seconds"] =
                        Double(Self.now.milliseconds / 1_000) + Double(days) * 86_400
                })
        }
        #expect(grade(15).isEmpty && grade(14) == ["warning certificates"] && grade(-1) == ["problem certificates"])
    }

    @Test("when the broker refuses counts, only the findings of queues are missing")
    func uncounted() {
        let findings = Self.findings(uncounted: BusError(.unavailable, "ask about queue mss.append: ACCESS_REFUSED"))
        #expect(Self.complaints(findings) == ["warning queues"])
        #expect(findings.contains { $0.lines.contains("ACCESS_REFUSED") })
    }

    @Test("queues without consumers, full queues, rejected facts, and counters that must stay 0")
    func queuesAndCounters() {
        func complaints(_ name: String, _ messages: Int, _ consumers: Int) -> [String] {
            Self.complaints(Self.findings(queues: [name: AMQPQueueDepth(messages: messages, consumers: consumers)]))
        }
        #expect(complaints("mss.append", 0, 0) == ["problem mss.append"])
        #expect(
            complaints("mss.append", 1_001, 1) == ["warning mss.append"] && complaints("mss.append", 1_000, 1) == [])
        #expect(complaints("mss.facts.dead", 1, 0) == ["warning mss.facts.dead"])
        for counter in ["mss_bus_answers_refused_total", "mss_gateway_facts_dropped_total"] {
            #expect(Self.complaints(Self.findings { $0.figures[counter] = 2 }) == ["warning mss-gateway"])
        }
    }

    @Test("the database: a standby, lost commits, missing migrations, its clock") func database() {
        func complaints(
            _ isStandby: Bool = false, fsync: String = "on", commit: String = "on", pending: [String] = [],
            ahead: Duration = .zero
        ) -> [String] {
            let diagnosis = DatabaseDiagnosis(
                version: "15", isStandby: isStandby, fsync: fsync, synchronousCommit: commit, pending: pending,
                ahead: ahead)
            return Self.complaints(diagnosis.findings)
        }
        #expect(complaints().isEmpty && complaints(commit: "remote_apply").isEmpty)
        #expect(complaints(true) == ["problem database"])
        #expect(complaints(fsync: "off") == ["problem database"] && complaints(commit: "local") == ["problem database"])
        #expect(complaints(pending: ["m0002"]) == ["problem database"])
        #expect(complaints(ahead: .seconds(-2)) == ["warning database"])
    }

    @Test("a finding is a line, with the remedy below it") func lines() {
        #expect(Finding.ok("queues", "none").lines == "ok       queues        none")
        #expect(
            Finding.problem("mss-session-validator", "gone", "start it").lines
                == "problem  mss-session-validator gone\n                       → start it")
    }
}
