/// The counts of a run that noise does not affect, by name, for comparison with limits.
enum LoadFigures {
    /// The counts of a run with resources: per push from the step `push`, per connect from the step `connects`, per
    /// session from the step `sessions`.
    static func of(_ report: LoadReport) -> [String: Double] {
        var figures: [String: Double] = [:]
        func step(_ name: String) -> LoadStepReport? { report.steps.first { $0.name == name } }
        if let step = step("push"), step.pushes > 0 {
            add(step, of: ["ingest", "writer", "gateway", "statistics"], per: "Push", count: step.pushes, to: &figures)
        }
        if let step = step("connects"), let connections = step.connections {
            add(step, of: ["writer", "gateway", "validator"], per: "Connect", count: connections.count, to: &figures)
        }
        if let step = step("sessions"), let connections = step.connections {
            for (name, process) in step.resources?.processes ?? [:] where name.hasPrefix("gateway") {
                figures["\(name).residentBytesPerSession"] =
                    Double(process.residentGrowthBytes) / Double(connections.count)
            }
        }
        return figures
    }

    /// Adds the counts of a step.
    ///
    /// - Parameters:
    ///   - tiers: the processes whose work belongs to the unit.
    ///   - unit: the end of the names.
    ///   - count: the number of units in the step.
    private static func add(
        _ step: LoadStepReport, of tiers: [String], per unit: String, count: Int, to figures: inout [String: Double]
    ) {
        func add(_ name: String, _ amount: Int?) {
            if let amount { figures["\(name)Per\(unit)"] = Double(amount) / Double(count) }
        }
        add("device.frames", step.traffic.framesIn)
        add("device.bytesFromDevice", step.traffic.deviceBytesOut)
        add("device.bytesToDevice", step.traffic.deviceBytesIn)
        add("http.bytesOfAnswer", step.traffic.httpBytesIn)
        guard let resources = step.resources else { return }
        for (name, process) in resources.processes where tiers.contains(String(name.prefix { $0 != "-" })) {
            add("\(name).allocations", process.allocations)
            add("\(name).sends", process.sends)
            add("\(name).bodiesSent", process.bodiesSent)
            add("\(name).bodiesReceived", process.bodiesReceived)
            add("\(name).wakeUps", process.wakeUps)
        }
        for wire in ["amqp", "postgresql"] {
            add("\(wire).bytes", resources.wires?[wire].map { $0.toServer + $0.fromServer })
        }
        add("database.rows", resources.database?.rows)
        add("database.statements", resources.database?.transactions)
        // After a checkpoint, the first change of a page logs all of it. That outweighs the log of some connects.
        guard unit != "Connect" else { return }
        add("database.walBytes", resources.database?.walBytes)
        add("database.walRecords", resources.database?.walRecords)
    }
}
