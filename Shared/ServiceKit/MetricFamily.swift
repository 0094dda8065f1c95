/// One metric with all its series, as Prometheus text has it (exposition format 0.0.4).
struct MetricFamily {
    let name: String
    /// `counter`, `gauge` or `histogram`.
    let type: String
    /// Each ends with a line feed.
    var lines: String

    /// With what it says of itself.
    var text: String {
        let help = MetricHelp.texts[name].map { "# HELP \(name) \($0)\n" } ?? ""
        return "\(help)# TYPE \(name) \(type)\n\(lines)"
    }

    /// A gauge without labels.
    static func gauge(_ name: String, _ value: some Numeric & CustomStringConvertible) -> MetricFamily {
        MetricFamily(name: name, type: "gauge", lines: "\(name) \(value)\n")
    }
}

extension HealthState {
    /// Whether the process is ready, and each of the conditions.
    var families: [MetricFamily] {
        let (isReady, conditions) = readiness
        let lines = conditions.sorted { $0.key < $1.key }.map {
            "mss_ready_condition{condition=\"\($0.key)\"} \($0.value ? 1 : 0)\n"
        }
        return [
            .gauge("mss_ready", isReady ? 1 : 0),
            MetricFamily(name: "mss_ready_condition", type: "gauge", lines: lines.joined()),
        ]
    }
}
