import BusMessages
import SwiftProtobuf
package import SyncModel

/// How one process stands, as consoles show it.
package struct ProcessReport: Hashable, Sendable {
    /// Figures that a report carries at the most.
    static let figuresMax = 100
    /// Conditions that a report carries at the most.
    private static let conditionsMax = 20
    /// Instances of which a report tells the connected devices at the most.
    static let instancesMax = 1_000
    /// Characters of a name.
    private static let nameMax = 100

    /// The process's clock in seconds since 1970.
    static let clockFigure = "mss_clock_seconds"

    /// The executable's name.
    package var service: String
    /// Of this run of the process.
    package var processID: String
    package var version: String
    package var startedAt: WallTime
    /// Whether work may be sent there.
    package var isReady: Bool
    /// What readiness consists of, by name; `running` is false while it drains.
    package var conditions: [String: Bool]
    /// Its counters and gauges without labels, by the names that `/metrics` gives them.
    package var figures: [String: Double]
    /// Of a gateway: the devices that it has connected now, by instance.
    package var devices: [InstanceID: Int] = [:]

    /// What the process's clock showed; nil: it did not say.
    package var clock: WallTime? {
        figures[Self.clockFigure].flatMap { Int64(exactly: ($0 * 1_000).rounded()) }.map(WallTime.init(milliseconds:))
    }
}

extension ProcessReport {
    /// Reads a report; nil when it is larger than any process sends, so that none can fill a console's memory.
    init?(bus report: Mss_Bus_V1_ProcessReport) {
        let instances = report.devices.keys
        let names = [report.service, report.processID, report.version] + report.conditions.keys + report.figures.keys
        guard instances.count <= Self.instancesMax, instances.allSatisfy({ $0.utf16.count <= Limits.linkTokenUnits }),
            report.figures.count <= Self.figuresMax, report.conditions.count <= Self.conditionsMax,
            names.allSatisfy({ $0.utf8.count <= Self.nameMax })
        else { return nil }
        self.init(
            service: report.service, processID: report.processID, version: report.version,
            startedAt: WallTime(milliseconds: report.startedAtMs), isReady: report.ready,
            conditions: report.conditions, figures: report.figures,
            devices: Dictionary(uniqueKeysWithValues: report.devices.map { (InstanceID($0.key), Int($0.value)) }))
    }

    /// The report as it travels.
    var bus: Mss_Bus_V1_ProcessReport {
        .with {
            $0.service = service
            $0.processID = processID
            $0.version = version
            $0.startedAtMs = startedAt.milliseconds
            $0.ready = isReady
            $0.conditions = conditions
            $0.figures = figures
            let fullest = devices.sorted { ($1.value, $0.key.text) < ($0.value, $1.key.text) }
            $0.devices = Dictionary(
                uniqueKeysWithValues: fullest.prefix(Self.instancesMax).map {
                    ($0.key.text, UInt32(clamping: $0.value))
                })
        }
    }
}
