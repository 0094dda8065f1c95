import ArgumentParser
import Foundation
import SyncModel
import ToolSupport

/// `mssctl export`: instances and configurations as a file.
struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Prints instances and configurations as JSON for mssctl apply.",
        discussion: "Keys are not included: the service shows a secret only once, when the key is created. "
            + ToolSettings.amqpHint)

    @Option(help: "Only this instance.")
    var instance: String?

    func run() async throws {
        try await ControlClient.with { client in
            let all = try await client.snapshot()
            let isWanted = { (id: InstanceID) in instance.map { $0 == id.text } ?? true }
            let instances = all.instances.filter { isWanted($0.id) }
            if let instance, instances.isEmpty { throw ValidationError("there is no instance \(instance)") }
            let configurations = all.configurations.filter { isWanted($0.instanceID) }
            FileHandle.standardOutput.write(try Self.json(instances, configurations) + Data("\n".utf8))
        }
    }

    /// The content of the file.
    static func json(_ instances: [Instance], _ configurations: [SyncConfiguration]) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(
            ControlFile(
                instances: instances.map { ControlFile.InstanceEntry($0) },
                configurations: configurations.map { ControlFile.ConfigurationEntry($0) }))
    }
}
