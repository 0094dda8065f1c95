/// The result of one step.
struct LoadStepReport: Hashable, Sendable, Codable {
    /// Connections that devices opened in the step.
    struct Connections: Hashable, Sendable, Codable {
        let count: Int
        let perSecond: Double
        /// Failed attempts that were repeated.
        let retries: Int
        /// Time from the first packet to the end of the backlog.
        let toCaughtUp: LatencyReport
    }

    let name: String
    let seconds: Double
    /// False if the step ended before its goal.
    let isComplete: Bool
    let connections: Connections?
    let streams: [StreamReport]
    /// The value is nil for a step without operations.
    let operations: OperationReport?
    let traffic: LoadTraffic
    /// Number of deliveries to devices.
    let deliveries: Int
    /// The value is nil if nothing was measured.
    var resources: ResourceReport?

    /// Number of pushes in the step.
    var pushes: Int { streams.reduce(0) { $0 + $1.pushes } }

    init(
        name: String, _ progress: LoadStepProgress, streams: [StreamReport], operations: OperationReport? = nil,
        traffic: LoadTraffic, deliveries: Int
    ) {
        self.name = name
        let seconds = Double(progress.end - progress.start) / 1e9
        self.seconds = (seconds * 1e3).rounded() / 1e3
        isComplete = progress.isComplete
        connections =
            progress.connects == 0
            ? nil
            : Connections(
                count: progress.connects, perSecond: (Double(progress.connects) / max(seconds, 0.001)).rounded(),
                retries: progress.retries, toCaughtUp: LatencyReport(progress.connectLatency))
        self.streams = streams
        self.operations = operations
        self.traffic = traffic
        self.deliveries = deliveries
    }

    /// The report as lines of text.
    var lines: [String] {
        let end = isComplete ? "" : ": NOT COMPLETE, no event for 15 s"
        var lines = ["\(name) (\(LoadText.number(seconds, decimals: 2)) s)\(end)"]
        if let connections {
            lines.append(
                "\(connections.count) connects = \(LoadText.number(connections.perSecond))/s, "
                    + "\(connections.retries) retries; to the end of the backlog: \(connections.toCaughtUp.text)")
        }
        if streams.isEmpty, deliveries > 0 {
            lines.append(
                "\(deliveries) deliveries of earlier pushes = "
                    + "\(LoadText.number(Double(deliveries) / max(seconds, 0.001)))/s")
        }
        for stream in streams { lines += stream.lines(seconds: seconds) }
        if let operations { lines += operations.lines(seconds: seconds) }
        if let resources { lines += resources.lines(pushes: pushes) }
        return lines
    }
}
