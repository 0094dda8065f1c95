import ArgumentParser
import Foundation

/// `backend`: the backend of the sample.
struct BackendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backend", abstract: "Runs the tenant's backend: operations, photos, pushes.")

    @Option(help: "The folder of the backend's records.")
    var folder: String
    @Option(help: "The port to listen on, at 127.0.0.1.")
    var port = 7195
    @Option(help: "The address of the API for pushes.")
    var api = "http://127.0.0.1:7080"
    @Option(help: "The instance.")
    var instance = "field_app"
    @Option(help: "The users of the app, separated by commas.")
    var users = "ana,ben"

    func run() async throws {
        let backend = try FieldBackend(
            folder: URL(filePath: folder), api: api, instance: instance,
            users: users.split(separator: ",").map(String.init))
        try await backend.run(port: port)
    }
}
