import ToolSupport

/// Resource use of a step: processors, memory, connections and the database.
struct ResourceReport: Hashable, Sendable, Codable {
    /// Resource use of the processes of one name.
    struct Process: Hashable, Sendable, Codable {
        let cpuMicroseconds: Int
        let wakeUps: Int
        /// Resident bytes at the end of the step.
        let residentBytes: Int
        /// Growth of the resident bytes in the step.
        let residentGrowthBytes: Int
        let bodiesSent: Int?
        let bodiesReceived: Int?
        let allocations: Int?
        let sends: Int?

        init(_ after: ProcessSample, since before: ProcessSample) {
            func difference(_ path: KeyPath<ProcessSample, Int?>) -> Int? {
                after[keyPath: path].flatMap { after in before[keyPath: path].map { after - $0 } }
            }
            cpuMicroseconds = after.cpuMicroseconds - before.cpuMicroseconds
            wakeUps = after.wakeUps - before.wakeUps
            residentBytes = after.residentBytes
            residentGrowthBytes = after.residentBytes - before.residentBytes
            bodiesSent = difference(\.bodiesSent)
            bodiesReceived = difference(\.bodiesReceived)
            allocations = difference(\.allocations)
            sends = difference(\.sends)
        }
    }

    let processes: [String: Process]
    /// Bytes by kind of connection. The value is nil if `ss` is not installed.
    let wires: [String: WireSample.Bytes]?
    /// The value is nil if the database was not measured.
    var database: DatabaseSample?

    init(_ after: StackProbe.Sample, since before: StackProbe.Sample) {
        processes = after.processes.reduce(into: [:]) { processes, process in
            guard let earlier = before.processes[process.key] else { return }
            processes[process.key] = Process(process.value, since: earlier)
        }
        wires = after.wires.flatMap { after in before.wires.map { after.since($0) } }
    }

    /// The report as lines of text, per push if there were pushes, otherwise in total.
    func lines(pushes: Int) -> [String] {
        let unit = pushes > 0 ? "/push" : ""
        func share(_ amount: Int?, decimals: Int = 2) -> String {
            guard let amount else { return "-" }
            return pushes > 0
                ? LoadText.number(Double(amount) / Double(pushes), decimals: decimals) : LoadText.number(Double(amount))
        }
        var rows = [
            [
                "process", "CPU µs\(unit)", "wake-ups\(unit)", "bodies out\(unit)", "in\(unit)", "allocations\(unit)",
                "sends\(unit)", "MB", "grown MB",
            ]
        ]
        for (name, process) in processes.sorted(by: { $0.key < $1.key }) {
            rows.append([
                name, share(process.cpuMicroseconds, decimals: 0), share(process.wakeUps), share(process.bodiesSent),
                share(process.bodiesReceived), share(process.allocations, decimals: 0),
                share(process.sends),
                LoadText.number(Double(process.residentBytes) / 1e6),
                LoadText.number(Double(process.residentGrowthBytes) / 1e6, decimals: 1),
            ])
        }
        var lines = LoadText.table(rows).map { "  " + $0 }
        if let wires {
            let parts = wires.sorted { $0.key < $1.key }.map {
                "\($0.key) \(share($0.value.toServer, decimals: 0)) in \(share($0.value.fromServer, decimals: 0)) out"
            }
            lines.append("  bytes\(unit): \(parts.joined(separator: ", "))")
        } else {
            lines.append("  bytes: not measured, ss is not installed")
        }
        if let database {
            lines.append(
                "  PostgreSQL\(unit): rows \(share(database.rowsInserted)) new \(share(database.rowsUpdated)) changed "
                    + "\(share(database.rowsDeleted)) removed \(share(database.rowsScanned)) scanned, "
                    + "pages \(share(database.pages)), transactions \(share(database.transactions)), "
                    + "WAL \(share(database.walBytes, decimals: 0)) bytes in \(share(database.walRecords)) records")
        }
        return lines
    }
}
