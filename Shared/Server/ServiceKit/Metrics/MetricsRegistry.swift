import CoreMetrics
import Synchronization

/// Counters, gauges and histograms of a process, as Prometheus text (exposition format 0.0.4).
///
/// Names are sanitized and begin with `mss_`. Times are in seconds.
final class MetricsRegistry: MetricsFactory {
    private struct Key: Hashable {
        let name: String
        let labels: String
    }

    private let series = Mutex<[Key: any Series]>([:])
    private let buildInfo: MetricFamily

    init(service: String, version: String) {
        buildInfo = MetricFamily(
            name: "mss_build_info", type: "gauge",
            lines: "mss_build_info{service=\"\(service)\",version=\"\(version)\"} 1\n")
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        make(label, dimensions, suffix: "_total") { CounterSeries() }
    }

    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        if aggregate { return make(label, dimensions) { HistogramSeries(bounds: HistogramSeries.sizes, scale: 1) } }
        return make(label, dimensions) { GaugeSeries() }
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        make(label, dimensions, suffix: "_seconds") { HistogramSeries(bounds: HistogramSeries.times, scale: 1e-9) }
    }

    // Series exist until the process ends: their labels come from closed sets.
    func destroyCounter(_: any CounterHandler) {}
    func destroyRecorder(_: any RecorderHandler) {}
    func destroyTimer(_: any TimerHandler) {}

    /// All families, sorted by name.
    var families: [MetricFamily] {
        let all = series.withLock { $0 }.sorted { ($0.key.name, $0.key.labels) < ($1.key.name, $1.key.labels) }
        var families = [buildInfo]
        for (key, one) in all {
            if key.name != families.last?.name {
                families.append(MetricFamily(name: key.name, type: one.type, lines: ""))
            }
            families[families.count - 1].lines += one.lines(name: key.name, labels: key.labels)
        }
        return families
    }

    /// Counters and gauges without labels. If there are more than a report can carry, the first ones by name; one place
    /// is left for the process's clock.
    var figures: [String: Double] {
        let all = series.withLock { $0 }.filter { $0.key.labels.isEmpty }.sorted { $0.key.name < $1.key.name }
        let values = all.compactMap { key, one in one.figure.map { (key.name, $0) } }
        return Dictionary(values.prefix(ProcessReport.figuresMax - 1)) { first, _ in first }
    }

    /// A label value, escaped for the text format.
    private static func escaped(_ value: String) -> String {
        value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }

    private func make<S: Series>(
        _ label: String, _ dimensions: [(String, String)], suffix: String = "", _ new: () -> S
    ) -> S {
        let clean = String(label.map { $0.isLetter || $0.isNumber ? $0 : "_" })
        let name = (clean.hasPrefix("mss_") ? "" : "mss_") + clean + (clean.hasSuffix(suffix) ? "" : suffix)
        let labels = dimensions.map { "\($0.0)=\"\(Self.escaped($0.1))\"" }.joined(separator: ",")
        return series.withLock { series in
            let key = Key(name: name, labels: labels)
            if let known = series[key] as? S { return known }
            let made = new()
            series[key] = made
            return made
        }
    }
}

/// The values of one metric with one set of labels.
private protocol Series: AnyObject, Sendable {
    var type: String { get }
    /// The value; nil for a histogram.
    var figure: Double? { get }
    func lines(name: String, labels: String) -> String
}

private final class CounterSeries: Series, CounterHandler {
    private let value = Atomic<Int64>(0)
    let type = "counter"
    var figure: Double? { Double(value.load(ordering: .relaxed)) }
    func increment(by amount: Int64) { value.add(amount, ordering: .relaxed) }
    func reset() { value.store(0, ordering: .relaxed) }
    func lines(name: String, labels: String) -> String {
        "\(name)\(labels.isEmpty ? "" : "{\(labels)}") \(value.load(ordering: .relaxed))\n"
    }
}

private final class GaugeSeries: Series, RecorderHandler {
    private let value = Mutex(0.0)
    let type = "gauge"
    var figure: Double? { value.withLock { $0 } }
    func record(_ value: Int64) { record(Double(value)) }
    func record(_ value: Double) { self.value.withLock { $0 = value } }
    func lines(name: String, labels: String) -> String {
        "\(name)\(labels.isEmpty ? "" : "{\(labels)}") \(value.withLock { $0 })\n"
    }
}

private final class HistogramSeries: Series, RecorderHandler, TimerHandler {
    static let times = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
    static let sizes = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000].map(Double.init)

    private struct State {
        var counts: [UInt64]
        var sum = 0.0
    }

    private let bounds: [Double]
    private let scale: Double
    private let state: Mutex<State>
    let type = "histogram"
    var figure: Double? { nil }

    init(bounds: [Double], scale: Double) {
        self.bounds = bounds
        self.scale = scale
        state = Mutex(State(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        let index = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { state in
            state.counts[index] += 1
            state.sum += value
        }
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) * scale) }

    func lines(name: String, labels: String) -> String {
        let state = state.withLock { $0 }
        let prefix = labels.isEmpty ? "" : labels + ","
        var text = ""
        var total: UInt64 = 0
        for (index, count) in state.counts.enumerated() {
            total += count
            let bound = index < bounds.count ? "\(bounds[index])" : "+Inf"
            text += "\(name)_bucket{\(prefix)le=\"\(bound)\"} \(total)\n"
        }
        let braces = labels.isEmpty ? "" : "{\(labels)}"
        return text + "\(name)_sum\(braces) \(state.sum)\n\(name)_count\(braces) \(total)\n"
    }
}

/// One metric with all its series, in the Prometheus text format (0.0.4).
struct MetricFamily {
    let name: String
    /// `counter`, `gauge` or `histogram`.
    let type: String
    /// The samples; each line ends with a line feed.
    var lines: String

    /// The samples after their HELP and TYPE lines.
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
    /// Gauges for the readiness and for each of its conditions.
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
