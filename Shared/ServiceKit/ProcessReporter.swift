import Foundation
import ServiceLifecycle
import SyncModel

/// Says how this process stands, again and again: consoles show it, and nobody keeps it.
package struct ProcessReporter: Sendable {
    /// Between two reports.
    static let interval = Duration.seconds(2)

    private let service: String
    private let version: String
    private let health: HealthState
    private let metrics: MetricsRegistry
    /// What a gateway says of its connections.
    package let devices = ConnectedDevices()
    private let processID = UUID().uuidString
    private let startedAt = WallTime.now

    init(service: String, version: String, health: HealthState, metrics: MetricsRegistry) {
        self.service = service
        self.version = version
        self.health = health
        self.metrics = metrics
    }

    /// How it stands now.
    var report: ProcessReport {
        let (isReady, conditions) = health.readiness
        var figures = metrics.figures
        figures[ProcessReport.clockFigure] = Double(WallTime.now.milliseconds) / 1_000
        return ProcessReport(
            service: service, processID: processID, version: version, startedAt: startedAt, isReady: isReady,
            conditions: conditions, figures: figures, devices: devices.counts)
    }

    /// Sends reports until it is cancelled or a shutdown begins; the last one says that the process drains.
    func run(_ send: @Sendable (ProcessReport) -> Void) async {
        while !Task.isCancelled {
            let isLast = Task.isShuttingDownGracefully
            send(report)
            if isLast { return }
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.interval) }
        }
    }
}
