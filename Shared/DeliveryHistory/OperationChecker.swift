/// Follows operations of devices from their submission over the tenant that does them to their results, and tells which
/// promises break: each is done once, in order for each entity, and its result reaches its device.
package struct OperationChecker: Sendable {
    /// What a tenant says to an operation.
    package enum Outcome: String, Sendable, Codable {
        /// It is done.
        case accepted
        /// It is not done and never will be.
        case refused
    }

    private struct Operation: Sendable {
        let line: Line
        /// Which one of its line it is, from 0.
        let place: Int
        var outcome: Outcome?
        var isTold = false
        var isConfirmed = false
    }

    /// What one device does to one entity.
    private struct Line: Hashable, Sendable {
        let device: String
        let entity: String
    }

    /// The tenant's new state after an operation, at a device.
    private struct State: Hashable, Sendable {
        let device: String
        let operation: String
    }

    /// No more are kept than these: what is wrong once is wrong a million times.
    private static let mostFaults = 200

    package private(set) var faults: [HistoryFault] = []
    package private(set) var faultCount = 0
    /// Operations that were submitted.
    package private(set) var submitted = 0
    /// Operations that the tenant has done or refused.
    package private(set) var decided = 0
    /// Calls of the tenant with an operation that it knew.
    package private(set) var repeatedCalls = 0
    /// Operations whose result has reached its device.
    package private(set) var told = 0
    private var operations: [String: Operation] = [:]
    private var lines: [Line: (submitted: Int, decided: Int)] = [:]
    private var openByDevice: [String: Int] = [:]
    private var confirmedStates: Set<State> = []

    package init() {}

    /// Operations without a result at their device.
    package var open: Int { submitted - told }

    /// Operations of a device without a result.
    package func open(of device: String) -> Int { openByDevice[device] ?? 0 }

    /// Some operations without a result, for a report.
    package func describeOpen(upTo count: Int) -> [String] {
        operations.lazy.filter { !$0.value.isTold }.prefix(count).map { id, operation in
            "\(id) of \(operation.line.device), \(operation.outcome.map { "\($0.rawValue)" } ?? "never done")"
        }
    }

    /// A device submits an operation; its store has it.
    package mutating func submit(_ id: String, by device: String, to entity: String) {
        let line = Line(device: device, entity: entity)
        operations[id] = Operation(line: line, place: lines[line]?.submitted ?? 0)
        lines[line, default: (0, 0)].submitted += 1
        openByDevice[device, default: 0] += 1
        submitted += 1
    }

    /// The tenant is called.
    ///
    /// - Parameter outcome: what it says to an operation that it does not know.
    /// - Returns: what it is to say.
    package mutating func call(
        _ id: String, by device: String, to entity: String, saying outcome: Outcome, at time: Duration
    ) -> Outcome {
        guard var operation = operations[id] else {
            add(.attempted, time, "the tenant is called with \(id), which nobody submitted")
            return outcome
        }
        if let known = operation.outcome {
            repeatedCalls += 1
            return known
        }
        guard operation.line == Line(device: device, entity: entity) else {
            add(.addressed, time, "\(id) comes as \(device)'s to \(entity), not as \(operation.line)")
            return outcome
        }
        let before = lines[operation.line]?.decided ?? 0
        if operation.place != before {
            add(.ordered, time, "\(id), number \(operation.place) of \(operation.line), comes as number \(before)")
        }
        lines[operation.line]?.decided += 1
        operation.outcome = outcome
        operations[id] = operation
        decided += 1
        return outcome
    }

    /// An app is given a result.
    package mutating func tell(
        _ id: String, to device: String, isAccepted: Bool, code: Int, at time: Duration
    ) {
        guard var operation = operations[id] else {
            return add(.attempted, time, "\(device) is told of \(id), which nobody submitted")
        }
        if operation.line.device != device { add(.addressed, time, "\(device) is told of \(id) of \(operation.line)") }
        if operation.isConfirmed { add(.delivered, time, "\(device) is told of \(id) once more") }
        switch operation.outcome {
        case nil: add(.attempted, time, "\(device) is told \(code) of \(id), which the tenant never saw")
        case let outcome? where (outcome == .accepted) != isAccepted:
            add(.attempted, time, "\(device) is told \(code) of \(id), and the tenant said \(outcome.rawValue)")
        default: break
        }
        if !operation.isTold {
            operation.isTold = true
            told += 1
            openByDevice[operation.line.device, default: 1] -= 1
        }
        operations[id] = operation
    }

    /// An app has confirmed a result: it must never come again.
    package mutating func confirm(_ id: String) { operations[id]?.isConfirmed = true }

    /// An app is given the tenant's new state after an operation.
    package mutating func give(stateAfter id: String, to device: String, at time: Duration) {
        if operations[id]?.outcome != .accepted {
            add(.attempted, time, "\(device) is given the state after \(id), which the tenant has not accepted")
        }
        if confirmedStates.contains(State(device: device, operation: id)) {
            add(.delivered, time, "\(device) is given the state after \(id) once more")
        }
    }

    /// An app has confirmed a state.
    package mutating func confirm(stateAfter id: String, by device: String) {
        confirmedStates.insert(State(device: device, operation: id))
    }

    /// Everything must have happened by now.
    package mutating func expectNothingOpen(at time: Duration) {
        guard open > 0 else { return }
        let texts = describeOpen(upTo: 3).joined(separator: "; ")
        add(.delivered, time, "\(open) operations have no result: \(texts)")
    }

    private mutating func add(_ promise: HistoryFault.Promise, _ time: Duration, _ text: String) {
        faultCount += 1
        if faults.count < Self.mostFaults { faults.append(HistoryFault(promise: promise, at: time, text: text)) }
    }
}
