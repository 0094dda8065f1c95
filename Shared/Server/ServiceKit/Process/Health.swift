import Foundation
import Hummingbird
import Logging
import ServiceLifecycle
import Synchronization

/// The readiness of a process: named conditions, all of which must hold, and whether the process is draining.
package final class HealthState: Sendable {
    private struct State {
        var conditions: [String: Bool] = [:]
        var isDraining = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Sets a condition. Only conditions that were set count.
    package func set(_ condition: String, isReady: Bool) { state.withLock { $0.conditions[condition] = isReady } }

    /// Marks the process as draining: it accepts no new work.
    package func drain() { state.withLock { $0.isDraining = true } }

    /// Whether new work is refused because the process is shutting down.
    package var isDraining: Bool { state.withLock { $0.isDraining } }

    /// Whether this process may receive work, and the conditions. Not ready before the first condition is set.
    package var readiness: (isReady: Bool, conditions: [String: Bool]) {
        state.withLock { state in
            var conditions = state.conditions
            if state.isDraining { conditions["running"] = false }
            return (!conditions.isEmpty && conditions.values.allSatisfy(\.self), conditions)
        }
    }
}

/// Serves `/livez`, `/readyz` and `/metrics` on a separate port (H8).
struct HealthServer: Service {
    let host: String
    let port: Int
    let health: HealthState
    let metrics: MetricsRegistry
    let logger: Logger

    func run() async throws {
        let router = Router()
        router.get("/livez") { _, _ in "ok\n" }
        let (health, metrics, process) = (health, metrics, ProcessFigures())
        router.get("/readyz") { _, _ in
            let (isReady, conditions) = health.readiness
            let members = conditions.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }
            return Response(
                status: isReady ? .ok : .serviceUnavailable, headers: [.contentType: "application/json"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: "{\(members.joined(separator: ","))}\n")))
        }
        router.get("/metrics") { _, _ in
            let families = metrics.families + health.families + process.families
            return Response(
                status: .ok, headers: [.contentType: "text/plain; version=0.0.4"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: families.map(\.text).joined())))
        }
        var quiet = logger
        quiet.logLevel = .warning
        let application = Application(
            router: router, configuration: .init(address: .hostname(host, port: port), serverName: nil), logger: quiet)
        try await application.run()
    }
}

/// Metrics from the kernel about this process, with the names of Prometheus' client libraries.
struct ProcessFigures {
    private let startedAt = Date.now.timeIntervalSince1970

    /// The current values; values that the kernel does not report are left out.
    var families: [MetricFamily] {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        let seconds = Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        let microseconds = Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
        let cpu = "process_cpu_seconds_total"
        var families = [
            MetricFamily(name: cpu, type: "counter", lines: "\(cpu) \(seconds + microseconds / 1e6)\n"),
            .gauge("process_start_time_seconds", startedAt),
            .gauge(ProcessReport.clockFigure, Date.now.timeIntervalSince1970),
            .gauge("process_max_fds", OpenFiles.limit),
        ]
        if let open = OpenFiles.count { families.append(.gauge("process_open_fds", open)) }
        if let bytes = Self.residentBytes { families.append(.gauge("process_resident_memory_bytes", bytes)) }
        return families
    }

    /// The second number of `statm`, converted from pages.
    private static var residentBytes: Int? {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return nil }
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) }
        return pages.map { $0 * sysconf(Int32(_SC_PAGESIZE)) }
    }
}
