/// An event for the handler. Events are delivered in the order of the commits.
enum EntityEvent: Sendable {
    case imported(Entity)
    case importSucceeded
    case replaySucceeded(Entity)
    case replayFailed(Entity, LogRecord)
    case operationSucceeded(component: String, name: String, key: String)
    case operationFailed(LogRecord)
    case transactionCommitted
    case transactionRolledBack
    case storageSpaceLow
    case storageSpaceRecovered
    case connectionStatusChanged(EntityConnectionStatus, reason: String)
    case subscription(EntitySubscriptionStep, typeName: String, failure: EntityError?)
    case resetSucceeded(typeName: String)

    /// Calls the handler's method for the event.
    func deliver(to handler: any EntityHandler) {
        switch self {
        case .imported(let entity): handler.onImport(entity)
        case .importSucceeded: handler.onImportSuccess()
        case .replaySucceeded(let entity): handler.onReplaySuccess(entity)
        case .replayFailed(let entity, let record): handler.onReplayFailure(entity, record)
        case .operationSucceeded(let component, let name, let key):
            handler.onOperationSuccess(component: component, operation: name, key: key)
        case .operationFailed(let record): handler.onOperationFailure(record)
        case .transactionCommitted: handler.onTransactionCommit()
        case .transactionRolledBack: handler.onTransactionRollback()
        case .storageSpaceLow: handler.onStorageSpaceLow()
        case .storageSpaceRecovered: handler.onStorageSpaceRecovered()
        case .connectionStatusChanged(let status, let reason): handler.onConnectionStatusChange(status, reason: reason)
        case .subscription(let step, let typeName, nil): step.notifySuccess(of: typeName, handler)
        case .subscription(let step, let typeName, let failure?): step.notifyFailure(failure, of: typeName, handler)
        case .resetSucceeded(let typeName): handler.onResetSuccess(typeName)
        }
    }
}
