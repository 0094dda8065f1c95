package import AMQP
import BusMessages
import Foundation
import Synchronization

/// Collects the reports of all processes for a console. It is complete a few seconds after the bus connects.
package final class ProcessReportBoard: Sendable {
    /// The exclusive queue of this process to declare.
    package let topology: AMQPTopology
    private let queue: String
    private let table = Mutex(ProcessReportTable())

    package init() {
        let processID = UUID().uuidString
        queue = Topology.reportsQueue(processID: processID)
        topology = .reports(processID: processID)
    }

    /// The queue to consume. No acknowledgements: the next report replaces a lost one.
    package var consumption: AMQPConsumption {
        AMQPConsumption(queue: queue, prefetch: nil) { [self] in record($0.map(\.body), at: .now) }
    }

    /// The newest report of each process that reported within the last 10 s, sorted by service and start.
    package var reports: [ProcessReport] { table.withLock { $0.reports(at: .now) } }

    private func record(_ bodies: [[UInt8]], at now: ContinuousClock.Instant) {
        let reports = bodies.flatMap { Mss_Bus_V1_ProcessReports.elements(of: $0) ?? [] }
            .compactMap { ProcessReport(bus: $0) }
        table.withLock { table in
            for report in reports { table.record(report, at: now) }
        }
    }
}

/// The newest report of each running process; pure.
struct ProcessReportTable: Sendable {
    /// A process without a report for this long counts as gone.
    static let lifetime = Duration.seconds(10)
    /// Maximum number of processes; reports of further processes are dropped.
    static let processesMax = 1_000

    private var newest: [String: (report: ProcessReport, at: ContinuousClock.Instant)] = [:]

    /// Records a received report.
    mutating func record(_ report: ProcessReport, at now: ContinuousClock.Instant) {
        if newest[report.processID] == nil, newest.count >= Self.processesMax {
            newest = newest.filter { Self.isThere($0.value.at, now) }
            guard newest.count < Self.processesMax else { return }
        }
        newest[report.processID] = (report, now)
    }

    /// The reports of running processes, sorted by service and start.
    func reports(at now: ContinuousClock.Instant) -> [ProcessReport] {
        newest.values.filter { Self.isThere($0.at, now) }.map(\.report)
            .sorted { ($0.service, $0.startedAt, $0.processID) < ($1.service, $1.startedAt, $1.processID) }
    }

    private static func isThere(_ heardAt: ContinuousClock.Instant, _ now: ContinuousClock.Instant) -> Bool {
        heardAt.duration(to: now) < lifetime
    }
}
