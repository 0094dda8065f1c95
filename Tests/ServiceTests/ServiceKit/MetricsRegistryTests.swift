import CoreMetrics
import Testing

@testable import ServiceKit

@Suite("Metrics")
struct MetricsRegistryTests {
    @Test("names get the prefix and the suffix of their kind once, and other characters become underscores")
    func names() {
        let registry = MetricsRegistry(service: "s", version: "1")
        registry.makeCounter(label: "a.b-c", dimensions: []).increment(by: 2)
        registry.makeCounter(label: "mss_d_total", dimensions: [("code", "X")]).increment(by: 1)
        let text = registry.families.map(\.text).joined()
        #expect(text.contains("# TYPE mss_a_b_c_total counter\nmss_a_b_c_total 2\n"))
        #expect(text.contains("mss_d_total{code=\"X\"} 1\n"))
        #expect(text.contains("mss_build_info{service=\"s\",version=\"1\"} 1\n"))
    }

    @Test("a label and its dimensions name one series, however often they are made")
    func sameSeries() {
        let registry = MetricsRegistry(service: "s", version: "1")
        for _ in 0..<3 { registry.makeCounter(label: "a", dimensions: [("b", "c")]).increment(by: 1) }
        #expect(registry.families.map(\.text).joined().contains("mss_a_total{b=\"c\"} 3\n"))
    }

    @Test("a timer is a histogram in seconds whose buckets add up")
    func timers() {
        let registry = MetricsRegistry(service: "s", version: "1")
        let timer = registry.makeTimer(label: "t", dimensions: [])
        for milliseconds in [1, 40, 20_000] as [Int64] { timer.recordNanoseconds(milliseconds * 1_000_000) }
        let text = registry.families.map(\.text).joined()
        #expect(text.contains("mss_t_seconds_bucket{le=\"0.001\"} 1\n"))
        #expect(text.contains("mss_t_seconds_bucket{le=\"0.05\"} 2\n"))
        #expect(text.contains("mss_t_seconds_bucket{le=\"+Inf\"} 3\n") && text.contains("mss_t_seconds_count 3\n"))
    }

    @Test("label values cannot break out of their quotes")
    func escaping() {
        let registry = MetricsRegistry(service: "s", version: "1")
        registry.makeCounter(label: "a", dimensions: [("b", "x\"y\\z\n")]).increment(by: 1)
        #expect(registry.families.map(\.text).joined().contains(#"mss_a_total{b="x\"y\\z\n"} 1"#))
    }
}
