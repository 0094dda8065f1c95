import Foundation

@testable import LocalEntities

/// The file of one test's store, which a test can open any number of times; it is removed with this object.
final class StoreFile {
    let path = NSTemporaryDirectory() + "entities-\(UUID().uuidString).sqlite"
    let submitter = FakeSubmitter()
    let handler: RecordingHandler

    init(handler: RecordingHandler = RecordingHandler()) { self.handler = handler }

    deinit {
        for suffix in ["", "-wal", "-shm", ".damaged"] { try? FileManager.default.removeItem(atPath: path + suffix) }
    }

    /// All bytes of the file, and of SQLite's log beside it.
    func bytes() throws -> Data {
        let files = ["", "-wal"].map { path + $0 }.filter { FileManager.default.fileExists(atPath: $0) }
        return try files.reduce(into: Data()) { $0 += try Data(contentsOf: URL(filePath: $1)) }
    }

    func open(
        schema: EntitySchema? = nil, userID: String = "", key: [UInt8]? = nil, limit: Int = 100_000_000,
        resolveConflict: EntityConflict.Resolver? = nil,
        clock: @escaping @Sendable () -> Date = { Date(timeIntervalSince1970: 1_000) }
    ) throws -> EntityStore {
        try EntityStore(
            EntityStoreConfiguration(
                path: path, schema: schema ?? Sample.schema(), userID: userID, encryptionKey: key, storeLimit: limit,
                handler: handler, resolveConflict: resolveConflict, clock: clock),
            submitter: submitter)
    }
}

extension EntityStore {
    /// A saved incident.
    @discardableResult
    func createIncident(_ id: String, title: String = "t") throws -> Entity {
        var entity = try makeEntity("Incident")
        try entity.set("id", to: .text(id))
        try entity.set("title", to: .text(title))
        try create(&entity)
        return entity
    }

    /// A saved note.
    @discardableResult
    func createNote(_ id: String, of incident: String) throws -> Entity {
        var entity = try makeEntity("Note")
        try entity.set("id", to: .text(id))
        try entity.set("incidentID", to: .text(incident))
        try entity.set("text", to: "x")
        try create(&entity)
        return entity
    }

    /// The incident with this id, which must exist.
    func incident(_ id: String) throws -> Entity {
        guard let found = try findByPrimaryKey("Incident", .text(id)) else {
            throw EntityError(.objectNotFound, "no incident \(id)")
        }
        return found
    }
}
