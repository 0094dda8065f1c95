import ArgumentParser
import Foundation

/// `backend`: the tenant's side of the sample.
struct BackendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backend", abstract: "The tenant's backend: operations, photos, pushes.")

    @Option(help: "Where it keeps its records.")
    var folder: String
    @Option(help: "Where it listens, on 127.0.0.1.")
    var port = 7195
    @Option(help: "Where pushes go.")
    var api = "http://127.0.0.1:7080"
    @Option(help: "The instance.")
    var instance = "field_app"
    @Option(help: "Whom changes are told, with commas.")
    var users = "ana,ben"

    func run() async throws {
        let backend = try FieldBackend(
            folder: URL(filePath: folder), api: api, instance: instance,
            users: users.split(separator: ",").map(String.init))
        try await backend.run(port: port)
    }
}
