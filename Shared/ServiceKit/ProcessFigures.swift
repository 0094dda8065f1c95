import Foundation

/// What the kernel says of this process, under the names that Prometheus' own client libraries give it.
struct ProcessFigures {
    private let startedAt = Date.now.timeIntervalSince1970

    /// How it stands now; what the kernel does not tell is left out.
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

    /// The second number of `statm` is in pages.
    private static var residentBytes: Int? {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return nil }
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) }
        return pages.map { $0 * sysconf(Int32(_SC_PAGESIZE)) }
    }
}
