import SyncModel
import SyncStore
import TenantCalls

/// The work of a relay between two turns: the calls and pushes in flight, their results that are not stored, and the
/// instances to claim from; pure.
struct OperationWork {
    typealias StoredOperation = DeviceOperationStore.StoredOperation

    private var slots: TenantSlots
    private var cursor = ClaimCursor()
    private var dueInstances: Set<InstanceID> = []
    /// Outcomes of calls that are not stored yet.
    private(set) var outcomes: [(stored: StoredOperation, outcome: CallOutcome)] = []
    /// Operations whose results are pushed and that are not finished yet.
    private(set) var announced: [DeviceOperationStore.AnnouncedOperation] = []
    private var pushesInFlight = 0
    private var claimsUnannounced = false

    init(slots: TenantSlots) { self.slots = slots }

    /// Calls in flight.
    var running: Int { slots.running }

    /// Whether no call and no push is in flight and no outcome waits.
    var isIdle: Bool { running == 0 && pushesInFlight == 0 && outcomes.isEmpty }

    /// Records that these instances may have operations to claim.
    mutating func due(_ ids: Set<InstanceID>) { dueInstances.formUnion(ids) }

    /// Records that a device repeated an operation that was finished, so its result must be pushed again.
    mutating func resultRepeated() { claimsUnannounced = true }

    /// Records that a second has passed.
    ///
    /// - Parameter instances: all instances. Each may have an operation whose pause has ended.
    mutating func ticked(_ instances: [InstanceID]) {
        dueInstances.formUnion(instances)
        cursor.forget()
        claimsUnannounced = true
    }

    // MARK: Claims

    /// Returns the claims to make now, and removes their instances. An instance without a free slot becomes due again
    /// when a call ends, or within a second.
    mutating func dequeueClaims(at now: ContinuousClock.Instant) -> [DeviceOperationStore.ClaimRequest] {
        defer { dueInstances = [] }
        return dueInstances.map {
            DeviceOperationStore.ClaimRequest(
                instanceID: $0, most: slots.free(for: $0, at: now), from: cursor.turn(of: $0))
        }.filter { $0.most > 0 }
    }

    /// Returns whether to claim operations whose results were not pushed in time. True once for each reason.
    mutating func dequeueUnannounced() -> Bool {
        defer { claimsUnannounced = false }
        return claimsUnannounced
    }

    /// Records the operations of one claim.
    mutating func claimed(_ all: [StoredOperation]) { cursor.claimed(all) }

    // MARK: Calls

    /// Begins a call, which must end with `callEnded`; nil: no call may begin.
    mutating func beginCall(_ id: InstanceID, at now: ContinuousClock.Instant) -> CircuitBreaker.Pass? {
        slots.begin(id, at: now)
    }

    /// Records the end of a call.
    mutating func callEnded(
        _ stored: StoredOperation, _ pass: CircuitBreaker.Pass, _ outcome: CallOutcome,
        at now: ContinuousClock.Instant
    ) {
        var isAnswer = true
        if case .again(_, _, _, let answered) = outcome { isAnswer = answered }
        slots.ended(stored.instanceID, pass, withAnswer: isAnswer, at: now)
        add(outcome, of: stored)
        dueInstances.insert(stored.instanceID)
    }

    /// Adds an outcome that needed no call.
    mutating func add(_ outcome: CallOutcome, of stored: StoredOperation) { outcomes.append((stored, outcome)) }

    /// Records that all outcomes are stored.
    mutating func outcomesStored() { outcomes = [] }

    // MARK: Pushes

    /// Records the begin of a push, which must end with `pushEnded`.
    mutating func pushBegan() { pushesInFlight += 1 }

    /// Records the end of the push of a group.
    mutating func pushEnded(_ group: [StoredOperation], isPushed: Bool) {
        pushesInFlight -= 1
        guard isPushed else { return }
        announced += group.map {
            DeviceOperationStore.AnnouncedOperation(
                instanceID: $0.instanceID, number: $0.number, resultGroup: $0.resultGroup)
        }
        dueInstances.formUnion(group.map(\.instanceID))
    }

    /// Records that all announced operations are finished.
    ///
    /// - Parameter turns: for each instance in which an operation became the first of its line, its turn.
    mutating func finished(advanced turns: [InstanceID: WallTime]) {
        cursor.advanced(turns)
        announced = []
    }
}
