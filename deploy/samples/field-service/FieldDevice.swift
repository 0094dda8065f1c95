import Foundation
import LocalEntities
import Logging
import MobileSync
import OfflineResources

/// One device: its client, its entities and its photos, each with a file in the folder. One process at a time can use
/// it.
struct FieldDevice: Sendable {
    let client: SyncClient
    let entities: EntityStore
    let resources: ResourceClient
    let settings: DeviceSettings
    let report: SyncReport
    let logger: Logger

    /// Opens a device without a network.
    init(folder: String) throws {
        let folder = URL(filePath: folder)
        guard let settings = try? DeviceSettings(of: folder) else {
            throw FieldError("\(folder.relativePath) is not a device; run mss-field-service join")
        }
        self.settings = settings
        // The commands print the results. Errors of the connection are retried and not shown.
        logger = Logger(label: "field") { _ in SwiftLogNoOpLogHandler() }
        report = SyncReport()
        client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: settings.host, port: settings.port, instanceID: settings.instance, deviceID: settings.device,
                storePath: folder.appending(path: "sync.sqlite").path,
                trust: .certificateAuthority(file: settings.authority)),
            logger: logger)
        try client.bind(userID: settings.user, sessionID: "SESSION_DEMO")
        entities = try EntityStore(
            EntityStoreConfiguration(
                path: folder.appending(path: "entities.sqlite").path,
                schema: EntitySchema([Incident.entityType, Technician.entityType]), userID: settings.user,
                handler: report),
            submitter: client)
        var configuration = ResourceConfiguration(storePath: folder.appending(path: "photos.sqlite").path)
        // A photo that another user has replaced meanwhile is not overwritten: the user decides.
        configuration.policies.paths[try PathPattern("/photos/*")] = SyncPolicy(
            conflictResolutionPolicy: .preserveConflict)
        resources = try ResourceClient(
            configuration: configuration, transport: HTTPResourceTransport(baseURL: settings.backend), logger: logger)
        try resources.bind(userID: settings.user)
        // Edits wait for the command `sync`.
        resources.setOfflineMode(true)
    }

    /// An incident by its key.
    func incident(_ id: String) throws -> EntityRow<Incident> {
        guard let row = try entities.findByPrimaryKey(Incident.self, .text(id)) else {
            throw FieldError("there is no incident \(id)")
        }
        return row
    }

    /// Changes an incident on the device. The next `sync` sends the change.
    func change(_ id: String, _ body: (inout EntityRow<Incident>) -> Void) async throws {
        var row = try incident(id)
        body(&row)
        try entities.update(&row)
        try await entities.submitPending(&row)
        print("incident \(id): \(row.record.summary)")
    }

    /// The URI of an incident's photo.
    static func photo(of id: String) -> String { "/photos/\(id)" }
}
