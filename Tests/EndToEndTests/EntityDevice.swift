import Foundation
import LocalEntities
import Logging
import MobileSync
import TestSupport

/// An app with entities on a device of the running system; made anew, it is a restart.
final class EntityDevice: Sendable {
    struct Incident: EntityRecord {
        static let entityType = EntityType(
            "Incident", key: "id", attributes: [EntityAttribute("id", .text), EntityAttribute("title", .text)],
            relationships: [EntityRelationship("notes", to: "Note", foreignKey: "incidentID")])
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

    let client: SyncClient
    let store: EntityStore
    private let synchroniser: EntitySynchroniser<SyncClient>

    init(_ stack: Stack, device: String, user: String, gateway: Int = 0) throws {
        let logger = Logger(label: "device") { _ in SwiftLogNoOpLogHandler() }
        let file = stack.folder.appending(path: device).path
        client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: stack.gateways[gateway], instanceID: Stack.clientInstance, deviceID: device,
                storePath: file + "-sync.sqlite", trust: .certificateAuthority(file: stack.certificateAuthority)),
            logger: logger)
        try client.bind(userID: user, sessionID: "session")
        let schema = try EntitySchema([Incident.entityType, Note.entityType])
        store = try EntityStore(
            EntityStoreConfiguration(path: file + "-entities.sqlite", schema: schema, userID: user), submitter: client)
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

    /// The title of an incident; nil: it is not here.
    func title(_ id: String) throws -> String? { try store.findByPrimaryKey(Incident.self, .text(id))?.title }

    /// Waits until an incident has this title here, and nothing is pending.
    func settles(_ id: String, _ title: String) async throws {
        try await eventually("\(id) is \(title) and settled", within: .seconds(20)) {
            try self.title(id) == title && !self.store.hasPendingOperations()
        }
    }
}
