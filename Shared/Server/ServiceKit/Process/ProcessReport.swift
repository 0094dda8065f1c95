import BusMessages
import SwiftProtobuf
package import SyncModel

/// The state of one process, as consoles show it.
package struct ProcessReport: Hashable, Sendable {
    /// Maximum number of figures in a report.
    static let figuresMax = 100
    /// Maximum number of conditions in a report.
    private static let conditionsMax = 20
    /// Maximum number of instances with connected devices in a report.
    static let instancesMax = 1_000
    /// Maximum UTF-8 bytes of a name.
    private static let nameMax = 100

    /// The process's clock in seconds since 1970.
    static let clockFigure = "mss_clock_seconds"

    /// The executable's name.
    package var service: String
    /// Identifies this run of the process.
    package var processID: String
    package var version: String
    package var startedAt: WallTime
    /// Whether the process may receive work.
    package var isReady: Bool
    /// The conditions of readiness by name; `running` is false while the process drains.
    package var conditions: [String: Bool]
    /// Counters and gauges without labels, by their names in `/metrics`.
    package var figures: [String: Double]
    /// For a gateway: the connected devices by instance.
    package var devices: [InstanceID: Int] = [:]

    /// The process's wall clock; nil if the report does not contain it.
    package var clock: WallTime? {
        figures[Self.clockFigure].flatMap { Int64(exactly: ($0 * 1_000).rounded()) }.map(WallTime.init(milliseconds:))
    }
}

extension ProcessReport {
    /// Reads a report. The value is nil for a report that is larger than any process sends, so that no sender can fill
    /// a console's
    /// memory.
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

    /// The report as a bus message, with at most `instancesMax` instances.
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
