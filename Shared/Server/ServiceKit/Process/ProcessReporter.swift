import Foundation
import ServiceLifecycle
package import SyncModel
import Synchronization

/// Sends the state of this process to consoles at a fixed interval. No process stores the reports.
package struct ProcessReporter: Sendable {
    /// Between two reports.
    static let interval = Duration.seconds(2)

    private let service: String
    private let version: String
    private let health: HealthState
    private let metrics: MetricsRegistry
    /// The connected devices of a gateway.
    package let devices = ConnectedDevices()
    private let processID = UUID().uuidString
    private let startedAt = WallTime.now

    init(service: String, version: String, health: HealthState, metrics: MetricsRegistry) {
        self.service = service
        self.version = version
        self.health = health
        self.metrics = metrics
    }

    /// The state now.
    var report: ProcessReport {
        let (isReady, conditions) = health.readiness
        var figures = metrics.figures
        figures[ProcessReport.clockFigure] = Double(WallTime.now.milliseconds) / 1_000
        return ProcessReport(
            service: service, processID: processID, version: version, startedAt: startedAt, isReady: isReady,
            conditions: conditions, figures: figures, devices: devices.counts)
    }

    /// Sends reports until cancellation or shutdown. The last report says that the process drains.
    func run(_ send: @Sendable (ProcessReport) -> Void) async {
        while !Task.isCancelled {
            let isLast = Task.isShuttingDownGracefully
            send(report)
            if isLast { return }
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.interval) }
        }
    }
}

/// The number of devices of each instance that are connected to this process now. Reports carry it to consoles (C1).
package final class ConnectedDevices: Sendable {
    private let current = Mutex<[InstanceID: Int]>([:])

    init() {}

    /// Replaces all numbers. Instances without devices may be left out.
    package func record(_ counts: [InstanceID: Int]) { current.withLock { $0 = counts } }

    /// The numbers that were recorded last.
    var counts: [InstanceID: Int] { current.withLock { $0 } }
}
