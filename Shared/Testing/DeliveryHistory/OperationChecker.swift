/// Follows the operations of devices from their submission to their results. It checks that the tenant executes each
/// operation once and in order for each entity, and that each result reaches its device.
package struct OperationChecker: Sendable {
    /// A tenant's answer to an operation.
    package enum Outcome: String, Sendable, Codable {
        /// The tenant executed it.
        case accepted
        /// The tenant refused it for good.
        case refused
    }

    private struct Operation: Sendable {
        let line: Line
        /// Index within the line, from 0.
        let place: Int
        var outcome: Outcome?
        var isTold = false
        var isConfirmed = false
    }

    /// The operations of one device on one entity.
    private struct Line: Hashable, Sendable {
        let device: String
        let entity: String
    }

    /// The entity's new state after an operation, as one device receives it.
    private struct State: Hashable, Sendable {
        let device: String
        let operation: String
    }

    private var faultLog = HistoryFaultLog()
    /// Operations that were submitted.
    package private(set) var submitted = 0
    /// Operations that the tenant has executed or refused.
    package private(set) var decided = 0
    /// Calls for an operation that the tenant has already decided.
    package private(set) var repeatedCalls = 0
    /// Operations whose result reached their device.
    package private(set) var told = 0
    private var operations: [String: Operation] = [:]
    private var lines: [Line: (submitted: Int, decided: Int)] = [:]
    private var openByDevice: [String: Int] = [:]
    private var confirmedStates: Set<State> = []

    package init() {}

    package var faults: [HistoryFault] { faultLog.faults }
    package var faultCount: Int { faultLog.count }

    /// Number of operations whose device has no result yet.
    package var open: Int { submitted - told }

    /// Number of a device's operations without a result.
    package func open(of device: String) -> Int { openByDevice[device] ?? 0 }

    /// Describes some operations without a result, for a report.
    package func describeOpen(upTo count: Int) -> [String] {
        operations.lazy.filter { !$0.value.isTold }.prefix(count).map { id, operation in
            "\(id) of \(operation.line.device), \(operation.outcome.map { "\($0.rawValue)" } ?? "not called")"
        }
    }

    /// A device has stored an operation for submission.
    package mutating func submit(_ id: String, by device: String, to entity: String) {
        let line = Line(device: device, entity: entity)
        operations[id] = Operation(line: line, place: lines[line]?.submitted ?? 0)
        lines[line, default: (0, 0)].submitted += 1
        openByDevice[device, default: 0] += 1
        submitted += 1
    }

    /// The service calls the tenant.
    ///
    /// - Parameter outcome: the tenant's answer if it does not know the operation.
    /// - Returns: the answer that the tenant must send.
    package mutating func call(
        _ id: String, by device: String, to entity: String, saying outcome: Outcome, at time: Duration
    ) -> Outcome {
        guard var operation = operations[id] else {
            add(.attempted, time, "the tenant was called with \(id), which no device submitted")
            return outcome
        }
        if let known = operation.outcome {
            repeatedCalls += 1
            return known
        }
        guard operation.line == Line(device: device, entity: entity) else {
            add(
                .addressed, time,
                "the tenant was called with \(id) of \(device) for \(entity), but it belongs to \(operation.line)")
            return outcome
        }
        let before = lines[operation.line]?.decided ?? 0
        if operation.place != before {
            add(.ordered, time, "\(id), number \(operation.place) of \(operation.line), was called as number \(before)")
        }
        lines[operation.line]?.decided += 1
        operation.outcome = outcome
        operations[id] = operation
        decided += 1
        return outcome
    }

    /// An app receives a result.
    package mutating func recordResult(
        _ id: String, to device: String, isAccepted: Bool, code: Int, at time: Duration
    ) {
        guard var operation = operations[id] else {
            return add(.attempted, time, "\(device) got a result of \(id), which no device submitted")
        }
        if operation.line.device != device {
            add(.addressed, time, "\(device) got the result of \(id) of \(operation.line)")
        }
        if operation.isConfirmed { add(.delivered, time, "\(device) got the result of \(id) again") }
        switch operation.outcome {
        case nil: add(.attempted, time, "\(device) got result \(code) of \(id), which the tenant has not received")
        case let outcome? where (outcome == .accepted) != isAccepted:
            add(.attempted, time, "\(device) got result \(code) of \(id), but the tenant answered \(outcome.rawValue)")
        default: break
        }
        if !operation.isTold {
            operation.isTold = true
            told += 1
            openByDevice[operation.line.device, default: 1] -= 1
        }
        operations[id] = operation
    }

    /// An app confirmed a result: it must never be handed out again.
    package mutating func confirm(_ id: String) { operations[id]?.isConfirmed = true }

    /// An app receives the entity's new state after an operation.
    package mutating func recordState(after id: String, to device: String, at time: Duration) {
        if operations[id]?.outcome != .accepted {
            add(.attempted, time, "\(device) got the state after \(id), which the tenant has not accepted")
        }
        if confirmedStates.contains(State(device: device, operation: id)) {
            add(.delivered, time, "\(device) got the state after \(id) again")
        }
    }

    /// An app confirmed a state.
    package mutating func confirm(stateAfter id: String, by device: String) {
        confirmedStates.insert(State(device: device, operation: id))
    }

    /// Adds a fault if an operation has no result.
    package mutating func expectNothingOpen(at time: Duration) {
        guard open > 0 else { return }
        let texts = describeOpen(upTo: 3).joined(separator: "; ")
        add(.delivered, time, "\(open) operations have no result: \(texts)")
    }

    private mutating func add(_ promise: HistoryFault.Promise, _ time: Duration, _ text: String) {
        faultLog.add(promise, at: time, text)
    }
}
