import Foundation

/// The result of a load run.
struct LoadReport: Hashable, Sendable, Codable {
    let scenario: String
    let run: String
    let part: LoadPlan.Part
    let users: Int
    let devices: Int
    var steps: [LoadStepReport] = []
    /// Number of deliveries of stored pushes that are missing.
    var lost = 0
    var faults = PushStateTable.Faults()
    /// Faults of operations, as text.
    var operationFaults: [String] = []
    /// Connections that devices lost.
    var fallenDevices = 0

    init(_ plan: LoadPlan) {
        scenario = plan.scenario.name
        run = plan.run
        part = plan.part
        users = plan.scenario.users
        devices = plan.scenario.devices
    }

    /// Whether no push was lost, duplicated, reordered or misdirected, operations have no fault, and every step is
    /// complete.
    var isCorrect: Bool {
        lost == 0 && faults.isEmpty && operationFaults.isEmpty && steps.allSatisfy(\.isComplete)
    }

    /// The report as text.
    var text: String {
        let head = "\(scenario): \(devices) devices of \(users) users"
        let end = """
            lost \(lost), duplicated \(faults.duplicated), out of order \(faults.outOfOrder), to the wrong device \
            \(faults.strangers), gaps \(faults.gaps), device connections closed \(fallenDevices)
            \(isCorrect ? "correct" : "NOT CORRECT")
            """
        return ([head] + steps.flatMap(\.lines) + operationFaults.prefix(10) + [end]).joined(separator: "\n")
    }

    /// The report as JSON. `deploy/load/README.md` describes its members.
    func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        return try encoder.encode(self) + Data("\n".utf8)
    }
}
