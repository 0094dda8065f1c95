import ArgumentParser
import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel

/// `mssctl apply`: creates or changes the instances and configurations of a file.
struct ApplyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apply",
        abstract: "Creates or changes the instances and configurations that a JSON file lists.",
        discussion: "Repeating it changes nothing. \(ToolSettings.amqpHint)")

    @Argument(help: "The file; deploy/demo/demo_app.json shows its form.", completion: .file())
    var file: String

    func run() async throws {
        guard let data = FileManager.default.contents(atPath: file) else {
            throw ValidationError("the file \(file) cannot be read")
        }
        let content: ControlFile
        do {
            content = try JSONDecoder().decode(ControlFile.self, from: data)
        } catch {
            throw ValidationError("\(file) is not of the expected form: \(error)")
        }
        try await ControlClient.with { client in
            let existing = try await client.snapshot().instances
            for entry in content.instances ?? [] {
                let before = existing.first { $0.id.text == entry.instanceId }
                let instance = Instance(entry, over: before)
                let decidesCallers = instance.requiresSignature && before?.requiresSignature == false
                let message = try instance.soundBus
                try await client.change("instance \(instance.id)", decidesCallers: decidesCallers) {
                    $0.putInstance = message
                }
            }
            for entry in content.configurations ?? [] {
                let configuration = SyncConfiguration(entry)
                let message = try configuration.soundBus
                try await client.change("configuration \(configuration.bizType)") { $0.putConfiguration = message }
            }
        }
    }
}
