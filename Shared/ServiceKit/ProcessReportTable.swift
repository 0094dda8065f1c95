/// The newest report of each process that is there; pure.
struct ProcessReportTable: Sendable {
    /// A process that was not heard of for this long is gone.
    static let lifetime = Duration.seconds(10)
    /// Processes at one time; reports of more are dropped.
    static let processesMax = 1_000

    private var newest: [String: (report: ProcessReport, at: ContinuousClock.Instant)] = [:]

    /// Notes a report that came in.
    mutating func take(_ report: ProcessReport, at now: ContinuousClock.Instant) {
        if newest[report.processID] == nil, newest.count >= Self.processesMax {
            newest = newest.filter { Self.isThere($0.value.at, now) }
            guard newest.count < Self.processesMax else { return }
        }
        newest[report.processID] = (report, now)
    }

    /// Those that are there, by service and start.
    func reports(at now: ContinuousClock.Instant) -> [ProcessReport] {
        newest.values.filter { Self.isThere($0.at, now) }.map(\.report)
            .sorted { ($0.service, $0.startedAt, $0.processID) < ($1.service, $1.startedAt, $1.processID) }
    }

    private static func isThere(_ heardAt: ContinuousClock.Instant, _ now: ContinuousClock.Instant) -> Bool {
        heardAt.duration(to: now) < lifetime
    }
}
