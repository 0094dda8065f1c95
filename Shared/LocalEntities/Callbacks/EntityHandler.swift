/// What an app is told of its entities (spec, two-way §2); every method has a default that does nothing.
///
/// Calls come one after the other, in the order of the commits, on the thread of whoever caused them, and outside of
/// the store's turn: a handler may use the store. They are not repeated after a crash; rows have their state for that.
public protocol EntityHandler: Sendable {
    /// The server's new version of a row is here; of one that was deleted, the last one that was known. A pending row's
    /// edit is still what the app sees.
    func onImport(_ entity: Entity)
    /// All rows of one import are here.
    func onImportSuccess()
    /// The server accepted a row's change.
    func onReplaySuccess(_ entity: Entity)
    /// The server refused a row's change, which stays pending; the record says why.
    func onReplayFailure(_ entity: Entity, _ record: LogRecord)
    /// The server accepted an operation of the app's own.
    func onOperationSuccess(component: String, operation: String, key: String)
    /// The server refused an operation of the app's own, or log records.
    func onOperationFailure(_ record: LogRecord)
    /// What the app did in a transaction is on the disk.
    func onTransactionCommit()
    /// The app's transaction threw; nothing of it was done.
    func onTransactionRollback()
    /// Nine tenths of the store's limit are used, or the disk is full.
    func onStorageSpaceLow()
    /// Less than eight tenths are used again.
    func onStorageSpaceRecovered()
    /// The connection is in another state.
    func onConnectionStatusChange(_ status: EntityConnectionStatus, reason: String)
    /// Data of the type comes.
    func onSubscribeSuccess(_ typeName: String)
    func onSubscribeFailure(_ typeName: String, _ error: EntityError)
    /// Nothing of the type comes until it is resumed.
    func onSuspendSubscriptionSuccess(_ typeName: String)
    func onSuspendSubscriptionFailure(_ typeName: String, _ error: EntityError)
    /// Data of the type comes again.
    func onResumeSubscriptionSuccess(_ typeName: String)
    func onResumeSubscriptionFailure(_ typeName: String, _ error: EntityError)
    /// The type's local data is deleted.
    func onUnsubscribeSuccess(_ typeName: String)
    func onUnsubscribeFailure(_ typeName: String, _ error: EntityError)
    /// A subscription is over.
    func onSubscriptionEnd(_ typeName: String)
    /// The type's settled rows are deleted, and all that the server has is on its way.
    func onResetSuccess(_ typeName: String)
    /// A synchronisation has come to a step; the answer says whether it goes on. Must not block.
    func onSynchronize(_ context: SynchronizationContext) -> SynchronizationAction
}

extension EntityHandler {
    public func onImport(_ entity: Entity) {}
    public func onImportSuccess() {}
    public func onReplaySuccess(_ entity: Entity) {}
    public func onReplayFailure(_ entity: Entity, _ record: LogRecord) {}
    public func onOperationSuccess(component: String, operation: String, key: String) {}
    public func onOperationFailure(_ record: LogRecord) {}
    public func onTransactionCommit() {}
    public func onTransactionRollback() {}
    public func onStorageSpaceLow() {}
    public func onStorageSpaceRecovered() {}
    public func onConnectionStatusChange(_ status: EntityConnectionStatus, reason: String) {}
    public func onSubscribeSuccess(_ typeName: String) {}
    public func onSubscribeFailure(_ typeName: String, _ error: EntityError) {}
    public func onSuspendSubscriptionSuccess(_ typeName: String) {}
    public func onSuspendSubscriptionFailure(_ typeName: String, _ error: EntityError) {}
    public func onResumeSubscriptionSuccess(_ typeName: String) {}
    public func onResumeSubscriptionFailure(_ typeName: String, _ error: EntityError) {}
    public func onUnsubscribeSuccess(_ typeName: String) {}
    public func onUnsubscribeFailure(_ typeName: String, _ error: EntityError) {}
    public func onSubscriptionEnd(_ typeName: String) {}
    public func onResetSuccess(_ typeName: String) {}
    public func onSynchronize(_ context: SynchronizationContext) -> SynchronizationAction { .proceed }
}
