import MobileSync

/// The content of a store at one moment. `EntityStore.read` passes it to its body.
///
/// Use it only on the thread of the body and only during the body; later every call throws.
public class EntitySnapshot: EntityReader {
    let context: TransactionContext
    private var isOpen = true

    init(_ context: TransactionContext) { self.context = context }

    /// Ends the snapshot: later calls throw.
    func end() { isOpen = false }

    // MARK: Parts

    var schema: EntitySchema { context.schema }
    var rows: RowStore { RowStore(context: context) }
    var operations: PendingOperationStore { PendingOperationStore(context: context) }
    var subscriptions: SubscriptionStore { SubscriptionStore(context: context) }
    var logs: LogRecordStore { LogRecordStore(context: context) }

    // MARK: Steps

    public func snapshot<Value>(_ body: (EntitySnapshot) throws -> Value) throws(EntityError) -> Value {
        try step("reading") { try body(self) }
    }

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
}
