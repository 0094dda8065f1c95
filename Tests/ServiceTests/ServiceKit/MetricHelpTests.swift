import Foundation
import TestSupport
import Testing

@testable import ServiceKit

@Suite("Descriptions of metrics")
struct MetricHelpTests {
    @Test("the operators' table has exactly the existing metrics") func documented() throws {
        let file = ProjectFolder.url.appending(path: "deploy/manual/Metrics.md")
        let text = try String(contentsOf: file, encoding: .utf8)
        let table = try #require(text.split(separator: "| Metric |").dropFirst().first?.split(separator: "\n\n").first)
        let names = table.split(separator: "\n").dropFirst(2).compactMap { $0.split(separator: "|").first }
        let named = names.flatMap { $0.matches(of: /`((?:mss|process)_[a-z_]+)/) }
        #expect(Set(named.map { String($0.1) }) == Set(MetricHelp.texts.keys))
    }

    @Test("every metric of a process has a matching description") func text() {
        let registry = MetricsRegistry(service: "s", version: "1")
        let health = HealthState()
        health.set("amqp", isReady: false)
        let families = registry.families + health.families + ProcessFigures().families
        let text = families.map(\.text).joined()
        #expect(text.contains("# HELP mss_ready 1 when"))
        #expect(text.contains("# TYPE mss_ready gauge\nmss_ready 0\n"))
        #expect(text.contains("mss_ready_condition{condition=\"amqp\"} 0\n"))
        #expect(families.allSatisfy { MetricHelp.texts[$0.name] != nil })
        #expect(families.contains { $0.name == "process_open_fds" })
    }
}
