import Foundation

/// What a load run found.
struct LoadReport: Hashable, Sendable, Codable {
    let scenario: String
    let run: String
    let part: LoadPlan.Part
    let users: Int
    let devices: Int
    var steps: [LoadStepReport] = []
    /// Deliveries of stored pushes that did not come.
    var lost = 0
    var faults = PushBook.Faults()
    /// What went wrong with operations, in words.
    var operationFaults: [String] = []
    /// Connections of devices that fell by themselves.
    var fallenDevices = 0

    init(_ plan: LoadPlan) {
        scenario = plan.scenario.name
        run = plan.run
        part = plan.part
        users = plan.scenario.users
        devices = plan.scenario.devices
    }

    /// A run that lost, doubled, reordered or misdirected one push has failed, however fast it was; so has one in which
    /// something was waited for in vain.
    var isCorrect: Bool {
        lost == 0 && faults.isEmpty && operationFaults.isEmpty && steps.allSatisfy(\.isComplete)
    }

    /// The report for people.
    var text: String {
        let head = "\(scenario): \(devices) devices of \(users) users"
        let end = """
            lost \(lost), duplicated \(faults.duplicated), out of order \(faults.outOfOrder), to the wrong device \
            \(faults.strangers), gaps \(faults.gaps), device connections closed \(fallenDevices)
            \(isCorrect ? "correct" : "NOT CORRECT")
            """
        return ([head] + steps.flatMap(\.lines) + operationFaults.prefix(10) + [end]).joined(separator: "\n")
    }

    /// The report for programs; `deploy/load/README.md` has its members.
    func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        return try encoder.encode(self) + Data("\n".utf8)
    }
}
