/// Receives the events of an entity store (ENT7). Every method has a default that does nothing.
///
/// The store makes one call at a time, in the order of the commits, on the thread of one of its callers. No transaction
/// is open during a call, so a handler can use the store. Calls are not repeated after a crash; use the state of the
/// rows instead.
public protocol EntityHandler: Sendable {
    /// A new version of a row arrived from the server; for a row that the server deleted, its last known version. While
    /// the row is pending, the app still sees its own edit.
    func onImport(_ entity: Entity)
    /// All rows of one import are stored.
    func onImportSuccess()
    /// The server accepted a row's change.
    func onReplaySuccess(_ entity: Entity)
    /// The server refused a row's change. The change stays pending; the record has the reason.
    func onReplayFailure(_ entity: Entity, _ record: LogRecord)
    /// The server accepted an operation that the app performed.
    func onOperationSuccess(component: String, operation: String, key: String)
    /// The server refused an operation that the app performed, or log records.
    func onOperationFailure(_ record: LogRecord)
    /// A transaction of the app is committed and on disk.
    func onTransactionCommit()
    /// A transaction of the app threw an error; nothing of it was stored.
    func onTransactionRollback()
    /// The store uses nine tenths of its limit, or the disk is full.
    func onStorageSpaceLow()
    /// The store uses less than eight tenths of its limit again.
    func onStorageSpaceRecovered()
    /// The state of the connection has changed.
    func onConnectionStatusChange(_ status: EntityConnectionStatus, reason: String)
    /// The type is subscribed: its data arrives.
    func onSubscribeSuccess(_ typeName: String)
    func onSubscribeFailure(_ typeName: String, _ error: EntityError)
    /// The type is suspended: no data arrives until it is resumed.
    func onSuspendSubscriptionSuccess(_ typeName: String)
    func onSuspendSubscriptionFailure(_ typeName: String, _ error: EntityError)
    /// The type is resumed: its data arrives again.
    func onResumeSubscriptionSuccess(_ typeName: String)
    func onResumeSubscriptionFailure(_ typeName: String, _ error: EntityError)
    /// The type is unsubscribed, and its local data is deleted.
    func onUnsubscribeSuccess(_ typeName: String)
    func onUnsubscribeFailure(_ typeName: String, _ error: EntityError)
    /// The subscription of the type has ended. Called after `onUnsubscribeSuccess`.
    func onSubscriptionEnd(_ typeName: String)
    /// The type's rows without an edit are deleted, and the server sends all its rows again.
    func onResetSuccess(_ typeName: String)
    /// A synchronisation has reached a step. The result decides whether it continues. The method must not block.
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
