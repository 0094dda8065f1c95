import AMQP
import ArgumentParser
import BusMessages
import Foundation
import Logging
import ServiceKit
import SwiftProtobuf
import SyncModel

/// `mssctl apply`: creates or changes the instances and configurations of a file.
struct ApplyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apply",
        abstract: "Creates or changes the instances and configurations that a JSON file lists.",
        discussion: "Reads MSS_AMQP_HOST, _PORT, _USER, _PASSWORD and _VHOST. Repeating it changes nothing.")

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
        let settings = try ToolSettings.read(ProcessSettings.amqpKeys)
        let bus = MessageBus(
            configuration: AMQPConfiguration(settings, connectionName: "mssctl"), consumptions: [],
            logger: ToolSettings.logger())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await bus.run() }
            for entry in content.instances ?? [] {
                let instance = Instance(entry)
                try await change(on: bus, "instance \(instance.id)") { $0.putInstance = instance.bus }
            }
            for entry in content.configurations ?? [] {
                let configuration = SyncConfiguration(entry)
                try await change(on: bus, "configuration \(configuration.bizType)") {
                    $0.putConfiguration = configuration.bus
                }
            }
            group.cancelAll()
        }
    }

    /// Makes one change; an oplog writer that is still starting is waited for.
    private func change(
        on bus: MessageBus, _ what: String, _ fill: @Sendable (inout Mss_Bus_V1_ControlCommand) -> Void
    ) async throws {
        let deadline = ContinuousClock.now + .seconds(20)
        while true {
            do throws(BusError) {
                let reply = try await bus.request(.control, as: Mss_Bus_V1_ControlCommands.self) { correlation in
                    var command = Mss_Bus_V1_ControlCommand()
                    command.correlation = correlation
                    fill(&command)
                    return command
                }
                guard reply.control.refusal.isEmpty else {
                    throw BusError(.failed(notAttempted: true), reply.control.refusal)
                }
                print("\(what): done, version \(reply.control.version)")
                return
            } catch {
                guard error.code == .unavailable || error.code == .unanswered, .now < deadline else {
                    throw ValidationError("\(what): \(error)")
                }
                try await Task.sleep(for: .milliseconds(200))
            }
        }
    }
}
