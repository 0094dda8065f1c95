import Synchronization

@testable import LocalEntities

/// Records its callbacks.
final class RecordingHandler: EntityHandler {
    private let lines = Mutex<[String]>([])
    private let action = Mutex<(@Sendable (String) -> Void)?>(nil)
    let answer: SynchronizationAction

    init(answer: SynchronizationAction = .proceed) { self.answer = answer }

    /// Removes and returns the callbacks so far.
    func drain() -> [String] {
        lines.withLock { lines in
            defer { lines = [] }
            return lines
        }
    }

    /// Runs this at each callback.
    func onCallback(_ body: @escaping @Sendable (String) -> Void) { action.withLock { $0 = body } }

    private func append(_ line: String) {
        lines.withLock { $0.append(line) }
        action.withLock { $0 }?(line)
    }

    func onImport(_ entity: Entity) { append("import \(entity.key.asText ?? "?")") }
    func onImportSuccess() { append("importSuccess") }
    func onReplaySuccess(_ entity: Entity) { append("replaySuccess \(entity.key.asText ?? "?")") }
    func onReplayFailure(_ entity: Entity, _ record: LogRecord) {
        append("replayFailure \(entity.key.asText ?? "?") \(record.code)")
    }
    func onOperationSuccess(component: String, operation: String, key: String) {
        append("operationSuccess \(component).\(operation) \(key)")
    }
    func onOperationFailure(_ record: LogRecord) { append("operationFailure \(record.operation) \(record.code)") }
    func onTransactionCommit() { append("transactionCommit") }
    func onTransactionRollback() { append("transactionRollback") }
    func onStorageSpaceLow() { append("storageSpaceLow") }
    func onStorageSpaceRecovered() { append("storageSpaceRecovered") }
    func onConnectionStatusChange(_ status: EntityConnectionStatus, reason: String) {
        append("connectionStatusChange \(status.rawValue) \(reason)")
    }
    func onSubscribeSuccess(_ typeName: String) { append("subscribeSuccess \(typeName)") }
    func onSubscribeFailure(_ typeName: String, _ error: EntityError) { append("subscribeFailure \(typeName)") }
    func onSuspendSubscriptionSuccess(_ typeName: String) { append("suspendSuccess \(typeName)") }
    func onSuspendSubscriptionFailure(_ typeName: String, _ error: EntityError) { append("suspendFailure \(typeName)") }
    func onResumeSubscriptionSuccess(_ typeName: String) { append("resumeSuccess \(typeName)") }
    func onResumeSubscriptionFailure(_ typeName: String, _ error: EntityError) { append("resumeFailure \(typeName)") }
    func onUnsubscribeSuccess(_ typeName: String) { append("unsubscribeSuccess \(typeName)") }
    func onUnsubscribeFailure(_ typeName: String, _ error: EntityError) { append("unsubscribeFailure \(typeName)") }
    func onSubscriptionEnd(_ typeName: String) { append("subscriptionEnd \(typeName)") }
    func onResetSuccess(_ typeName: String) { append("resetSuccess \(typeName)") }
    func onSynchronize(_ context: SynchronizationContext) -> SynchronizationAction {
        append("synchronize \(context.status.rawValue) \(context.groups) \(context.userContext) \(context.reason)")
        return answer
    }
}
