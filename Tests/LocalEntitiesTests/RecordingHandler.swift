import Synchronization

@testable import LocalEntities

/// Writes down what it is told.
final class RecordingHandler: EntityHandler {
    private let lines = Mutex<[String]>([])
    private let action = Mutex<(@Sendable (String) -> Void)?>(nil)
    let answer: SynchronizationAction

    init(answer: SynchronizationAction = .proceed) { self.answer = answer }

    /// What it was told, each time forgetting it.
    func take() -> [String] {
        lines.withLock { lines in
            defer { lines = [] }
            return lines
        }
    }

    /// Does something at each call.
    func whenTold(_ body: @escaping @Sendable (String) -> Void) { action.withLock { $0 = body } }

    private func note(_ line: String) {
        lines.withLock { $0.append(line) }
        action.withLock { $0 }?(line)
    }

    func onImport(_ entity: Entity) { note("import \(entity.key.asText ?? "?")") }
    func onImportSuccess() { note("importSuccess") }
    func onReplaySuccess(_ entity: Entity) { note("replaySuccess \(entity.key.asText ?? "?")") }
    func onReplayFailure(_ entity: Entity, _ record: LogRecord) {
        note("replayFailure \(entity.key.asText ?? "?") \(record.code)")
    }
    func onOperationSuccess(component: String, operation: String, key: String) {
        note("operationSuccess \(component).\(operation) \(key)")
    }
    func onOperationFailure(_ record: LogRecord) { note("operationFailure \(record.operation) \(record.code)") }
    func onTransactionCommit() { note("transactionCommit") }
    func onTransactionRollback() { note("transactionRollback") }
    func onStorageSpaceLow() { note("storageSpaceLow") }
    func onStorageSpaceRecovered() { note("storageSpaceRecovered") }
    func onConnectionStatusChange(_ status: EntityConnectionStatus, reason: String) {
        note("connectionStatusChange \(status.rawValue) \(reason)")
    }
    func onSubscribeSuccess(_ typeName: String) { note("subscribeSuccess \(typeName)") }
    func onSubscribeFailure(_ typeName: String, _ error: EntityError) { note("subscribeFailure \(typeName)") }
    func onSuspendSubscriptionSuccess(_ typeName: String) { note("suspendSuccess \(typeName)") }
    func onSuspendSubscriptionFailure(_ typeName: String, _ error: EntityError) { note("suspendFailure \(typeName)") }
    func onResumeSubscriptionSuccess(_ typeName: String) { note("resumeSuccess \(typeName)") }
    func onResumeSubscriptionFailure(_ typeName: String, _ error: EntityError) { note("resumeFailure \(typeName)") }
    func onUnsubscribeSuccess(_ typeName: String) { note("unsubscribeSuccess \(typeName)") }
    func onUnsubscribeFailure(_ typeName: String, _ error: EntityError) { note("unsubscribeFailure \(typeName)") }
    func onSubscriptionEnd(_ typeName: String) { note("subscriptionEnd \(typeName)") }
    func onResetSuccess(_ typeName: String) { note("resetSuccess \(typeName)") }
    func onSynchronize(_ context: SynchronizationContext) -> SynchronizationAction {
        note("synchronize \(context.status.rawValue) \(context.groups) \(context.userContext) \(context.reason)")
        return answer
    }
}
