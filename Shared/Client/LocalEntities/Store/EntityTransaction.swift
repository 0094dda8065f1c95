import MobileSync

/// Changes that take effect together. `EntityStore.transaction` passes it to its body.
///
/// Use it only on the thread of the body and only during the body; later every call throws.
public final class EntityTransaction {
    let context: TransactionContext
    private var isOpen = true

    init(_ context: TransactionContext) { self.context = context }

    /// Ends the transaction: later calls throw.
    func end() { isOpen = false }

    // MARK: Parts

    var schema: EntitySchema { context.schema }
    var rows: RowStore { RowStore(context: context) }
    var operations: PendingOperationStore { PendingOperationStore(context: context) }
    var submissions: SubmissionBuilder { SubmissionBuilder(context: context) }
    var canceller: ChangeCanceller { ChangeCanceller(context: context) }
    var results: ResultApplier { ResultApplier(context: context) }
    var importer: RowImporter { RowImporter(context: context) }
    var subscriptions: SubscriptionStore { SubscriptionStore(context: context) }
    var logs: LogRecordStore { LogRecordStore(context: context) }

    // MARK: Steps

    /// Executes a step.
    ///
    /// - Throws: `EntityError.persistence` with the step's name; an `EntityError` of the body is rethrown.
    func step<Value>(_ name: String, _ body: () throws -> Value) throws(EntityError) -> Value {
        guard isOpen else {
            throw EntityError(.persistence, "\(name): the transaction has ended; call it inside the transaction's body")
        }
        do {
            return try body()
        } catch {
            throw EntityError.wrapping(error, name)
        }
    }

    /// Deletes old entries: counters of deletions, and cancelled operations without a result. No import that old can
    /// still arrive.
    func prune() throws {
        let oldest = context.now - EntityLimits.kept.milliseconds
        try TombstoneStore(context: context).prune(before: oldest)
        try operations.prune(before: oldest)
    }
}
