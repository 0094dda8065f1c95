package import AMQP
import BusMessages
import Foundation
import Synchronization

/// Hears how every process stands: what a console shows of them. It is full some seconds after the bus is connected.
package final class ProcessReportBoard: Sendable {
    /// The queue to declare, an exclusive one of this process.
    package let topology: AMQPTopology
    private let queue: String
    private let table = Mutex(ProcessReportTable())

    package init() {
        let processID = UUID().uuidString
        queue = Topology.reportsQueue(processID: processID)
        topology = .reports(processID: processID)
    }

    /// What to consume. Nothing is settled: of a lost report the next one says it all.
    package var consumption: AMQPConsumption {
        AMQPConsumption(queue: queue, prefetch: nil) { [self] in take($0.map(\.body), at: .now) }
    }

    /// The newest report of each process that was heard of in the last 10 s, by service and start.
    package var reports: [ProcessReport] { table.withLock { $0.reports(at: .now) } }

    private func take(_ bodies: [[UInt8]], at now: ContinuousClock.Instant) {
        let reports = bodies.flatMap { Mss_Bus_V1_ProcessReports.elements(of: $0) ?? [] }
            .compactMap { ProcessReport(bus: $0) }
        table.withLock { table in
            for report in reports { table.take(report, at: now) }
        }
    }
}
