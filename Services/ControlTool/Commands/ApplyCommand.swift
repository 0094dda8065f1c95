import ArgumentParser
import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel
import ToolSupport

/// `mssctl apply`: creates or changes the instances and configurations of a file.
struct ApplyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apply",
        abstract: "Creates or changes the instances and configurations of a JSON file.",
        discussion: "A repeated call changes nothing. \(ToolSettings.amqpHint)")

    @Argument(help: "The file; see deploy/demo/demo_app.json.", completion: .file())
    var file: String

    func run() async throws {
        guard let data = FileManager.default.contents(atPath: file) else {
            throw ValidationError("cannot read the file \(file)")
        }
        let content: ControlFile
        do {
            content = try JSONDecoder().decode(ControlFile.self, from: data)
        } catch {
            throw ValidationError("\(file) does not have the expected format: \(error)")
        }
        try await ControlClient.with { client in
            let existing = try await client.snapshot().instances
            for entry in content.instances ?? [] {
                let before = existing.first { $0.id.text == entry.instanceId }
                let instance = Instance(entry, over: before)
                let decidesCallers = instance.requiresSignature && before?.requiresSignature == false
                let message = try instance.validatedMessage
                try await client.change("instance \(instance.id)", decidesCallers: decidesCallers) {
                    $0.putInstance = message
                }
            }
            for entry in content.configurations ?? [] {
                let configuration = SyncConfiguration(entry)
                let message = try configuration.validatedMessage
                try await client.change("configuration \(configuration.bizType)") { $0.putConfiguration = message }
            }
        }
    }
}
