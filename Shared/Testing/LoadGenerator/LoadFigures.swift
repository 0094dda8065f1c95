/// The counts of a run that noise does not affect, by name, for comparison with limits.
enum LoadFigures {
    /// The counts of a run with resources: per push from the step `push`, per session from the step `sessions`.
    static func of(_ report: LoadReport) -> [String: Double] {
        var figures: [String: Double] = [:]
        if let step = report.steps.first(where: { $0.name == "push" }), step.pushes > 0 {
            addPushes(step, to: &figures)
        }
        if let step = report.steps.first(where: { $0.name == "sessions" }), let connections = step.connections {
            for (name, process) in step.resources?.processes ?? [:] where name.hasPrefix("gateway") {
                figures["\(name).residentBytesPerSession"] =
                    Double(process.residentGrowthBytes) / Double(connections.count)
            }
        }
        return figures
    }

    private static func addPushes(_ step: LoadStepReport, to figures: inout [String: Double]) {
        let pushes = Double(step.pushes)
        func add(_ name: String, _ amount: Int?) {
            if let amount { figures[name] = Double(amount) / pushes }
        }
        add("device.framesPerPush", step.traffic.framesIn)
        add("device.bytesFromDevicePerPush", step.traffic.deviceBytesOut)
        add("device.bytesToDevicePerPush", step.traffic.deviceBytesIn)
        add("http.bytesOfAnswerPerPush", step.traffic.httpBytesIn)
        guard let resources = step.resources else { return }
        for (name, process) in resources.processes
        where ["ingest", "writer", "gateway", "statistics"].contains(
            String(name.prefix { $0 != "-" }))
        {
            add("\(name).allocationsPerPush", process.allocations)
            add("\(name).bodiesSentPerPush", process.bodiesSent)
            add("\(name).bodiesReceivedPerPush", process.bodiesReceived)
            add("\(name).wakeUpsPerPush", process.wakeUps)
        }
        for wire in ["amqp", "postgresql"] {
            add("\(wire).bytesPerPush", resources.wires?[wire].map { $0.toServer + $0.fromServer })
        }
        add("database.rowsPerPush", resources.database?.rows)
        add("database.statementsPerPush", resources.database?.transactions)
        add("database.walBytesPerPush", resources.database?.walBytes)
        add("database.walRecordsPerPush", resources.database?.walRecords)
    }
}
