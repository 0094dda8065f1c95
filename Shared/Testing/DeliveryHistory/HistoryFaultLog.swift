/// The violations that a checker found.
struct HistoryFaultLog: Sendable {
    /// Later violations are counted but not stored: one defect can cause very many.
    private static let mostFaults = 200

    private(set) var faults: [HistoryFault] = []
    private(set) var count = 0

    mutating func add(_ promise: HistoryFault.Promise, at time: Duration, _ text: String) {
        count += 1
        if faults.count < Self.mostFaults { faults.append(HistoryFault(promise: promise, at: time, text: text)) }
    }
}
