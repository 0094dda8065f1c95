import Foundation
import LocalEntities
import Logging
import MobileSync
import Synchronization
import TestSupport

/// An app with entities on a device of the running system. A second object on the same files is a restart.
final class EntityDevice: Sendable {
    struct Incident: EntityRecord {
        static let entityType = EntityType(
            "Incident", key: "id", attributes: [EntityAttribute("id", .text), EntityAttribute("title", .text)],
            relationships: [EntityRelationship("notes", to: "Note", foreignKey: "incidentID", inverse: "incident")],
            operations: [EntityOperationType("rename", parameters: [EntityAttribute("title", .text)])])
        var id: String
        var title: String
    }

    struct Note: EntityRecord {
        static let entityType = EntityType(
            "Note", key: "id",
            attributes: [
                EntityAttribute("id", .text), EntityAttribute("incidentID", .text), EntityAttribute("text", .text),
            ])
        var id: String
        var incidentID: String
        var text: String
    }

    /// The callbacks to the app, in order.
    final class Told: EntityHandler {
        private struct State {
            var imports: [String] = []
            var lines: [String] = []
            var steps: [SynchronizationContext] = []
            var cancelsAt: SynchronizationContext.Status?
        }

        private let state = Mutex(State())

        /// Keys of the entities that were imported from the server.
        var imports: [String] { state.withLock { $0.imports } }
        /// Results of submissions and of subscriptions.
        var lines: [String] { state.withLock { $0.lines } }
        /// The steps of synchronisations.
        var steps: [SynchronizationContext] { state.withLock { $0.steps } }

        /// Answers this step with CANCEL, once; all others with CONTINUE.
        func cancel(at step: SynchronizationContext.Status) { state.withLock { $0.cancelsAt = step } }

        private func append(_ line: String) { state.withLock { $0.lines.append(line) } }

        func onImport(_ entity: Entity) { state.withLock { $0.imports.append(entity.key.asText ?? "") } }
        func onReplaySuccess(_ entity: Entity) { append("replaySuccess \(entity.key.asText ?? "")") }
        func onOperationSuccess(component: String, operation: String, key: String) {
            append("operationSuccess \(component).\(operation) \(key)")
        }
        func onSubscribeSuccess(_ typeName: String) { append("subscribeSuccess \(typeName)") }
        func onSubscribeFailure(_ typeName: String, _ error: EntityError) { append("subscribeFailure \(typeName)") }
        func onSuspendSubscriptionSuccess(_ typeName: String) { append("suspendSuccess \(typeName)") }
        func onSuspendSubscriptionFailure(_ typeName: String, _ error: EntityError) {
            append("suspendFailure \(typeName)")
        }
        func onResumeSubscriptionSuccess(_ typeName: String) { append("resumeSuccess \(typeName)") }
        func onResumeSubscriptionFailure(_ typeName: String, _ error: EntityError) {
            append("resumeFailure \(typeName)")
        }
        func onUnsubscribeSuccess(_ typeName: String) { append("unsubscribeSuccess \(typeName)") }
        func onUnsubscribeFailure(_ typeName: String, _ error: EntityError) { append("unsubscribeFailure \(typeName)") }
        func onSubscriptionEnd(_ typeName: String) { append("subscriptionEnd \(typeName)") }
        func onResetSuccess(_ typeName: String) { append("resetSuccess \(typeName)") }
        func onSynchronize(_ context: SynchronizationContext) -> SynchronizationAction {
            state.withLock { state in
                state.steps.append(context)
                guard context.status == state.cancelsAt else { return .proceed }
                state.cancelsAt = nil
                return .cancel
            }
        }
    }

    /// A reference to the store, which is created after the client. It is weak because the store keeps the client.
    private final class LateStore: Sendable {
        private struct Reference {
            weak var store: EntityStore?
        }

        private let reference = Mutex(Reference())

        func set(_ store: EntityStore) { reference.withLock { $0.store = store } }

        func onSynchronize(_ step: SyncStep) -> SyncDecision {
            reference.withLock { $0.store }?.onSynchronize(step) ?? .proceed
        }
    }

    let client: SyncClient
    let store: EntityStore
    let told = Told()
    let synchroniser: EntitySynchroniser<SyncClient>

    /// - Parameters:
    ///   - storeKey: encrypts the client's file; nil: not encrypted.
    ///   - encryptionKey: encrypts the entities' file; nil: not encrypted.
    init(
        _ stack: Stack, device: String, user: String, gateway: Int = 0, storeKey: [UInt8]? = nil,
        encryptionKey: [UInt8]? = nil
    ) throws {
        let logger = Logger(label: "device") { _ in SwiftLogNoOpLogHandler() }
        let file = stack.folder.appending(path: device).path
        let lateStore = LateStore()
        client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: stack.gateways[gateway], instanceID: Stack.clientInstance, deviceID: device,
                storePath: file + "-sync.sqlite", trust: .certificateAuthority(file: stack.certificateAuthority),
                storeKey: storeKey, onSynchronize: { lateStore.onSynchronize($0) }),
            logger: logger)
        try client.bind(userID: user, sessionID: "session")
        let schema = try EntitySchema([Incident.entityType, Note.entityType])
        store = try EntityStore(
            EntityStoreConfiguration(
                path: file + "-entities.sqlite", schema: schema, userID: user, encryptionKey: encryptionKey,
                handler: told),
            submitter: client)
        lateStore.set(store)
        synchroniser = EntitySynchroniser(store: store, feed: client, logger: logger)
    }

    /// Runs client and synchroniser while the body runs.
    func running(_ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [client] in try await client.run() }
            group.addTask { [synchroniser] in try await synchroniser.run() }
            try await body()
            group.cancelAll()
        }
    }

    /// The title of an incident; nil: the device does not have it.
    func title(_ id: String) throws -> String? { try store.findByPrimaryKey(Incident.self, .text(id))?.title }

    /// Waits until the app has confirmed all oplogs of a type, so that a recovery brings all of them again.
    func confirmsAll(of type: String) async throws {
        // Global pushes of other tests arrive too, for types that this app has not registered.
        try await eventually("all of \(type) is confirmed", within: .seconds(20)) {
            try await self.client.channelSummaries().allSatisfy { $0.bizType != type || $0.unconfirmed == 0 }
        }
    }

    /// Waits until the incident has this title on the device, and no operation is pending.
    func waitUntilSettled(_ id: String, _ title: String) async throws {
        try await eventually("\(id) is \(title) and settled", within: .seconds(20)) {
            try self.title(id) == title && !self.store.hasPendingOperations()
        }
    }
}
