import ArgumentParser
import BusMessages
import SwiftProtobuf
import SyncModel
import ToolSupport

/// `mssctl dead-letters`: oplogs that apps did not confirm within the resend ladder (D14).
struct DeadLettersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dead-letters", abstract: "Lists dead letters, and replays one.",
        discussion: ToolSettings.amqpHint, subcommands: [List.self, Replay.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "One line for each dead letter, the newest first.")
        @Option(help: "The instance.")
        var instance: String
        @Option(help: "Only of this Sync ID.")
        var bizType: String?
        @Option(help: "Most lines, 1 to 1000.")
        var limit = 100

        func run() async throws {
            let request = Mss_Bus_V1_DeadLettersRequest.with {
                $0.instanceID = instance
                $0.bizType = bizType ?? ""
                $0.limit = UInt32(clamping: limit)
            }
            try await ControlClient.with { client in
                let letters = try await client.operate { $0.deadLetters = request }.deadLetters.letters
                for letter in letters { print(letter.line) }
            }
        }
    }

    struct Replay: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Sends a dead letter to its device again, with a new resend ladder.")
        @OptionGroup var name: OplogArguments
        @Option(help: "The device.")
        var device: String

        func run() async throws {
            guard let id = name.id else { throw ValidationError("--id is missing: name the thirdMsgId of the push") }
            let request = Mss_Bus_V1_ReplayRequest.with {
                $0.oplog.instanceID = name.instance
                $0.oplog.bizType = name.bizType
                $0.oplog.linkToken = name.to ?? ""
                $0.oplog.thirdMessageID = id
                $0.deviceID = device
            }
            try await ControlClient.with { client in
                let reply = try await client.operate { $0.replay = request }.replay
                guard reply.rereadID > 0 else {
                    throw ValidationError(
                        "there is no such dead letter, or it has expired; see mssctl dead-letters list")
                }
                print("replay \(reply.rereadID) of \(id): sent to \(request.deviceID) when the device is connected")
            }
        }
    }
}

extension Mss_Bus_V1_DeadLetter {
    /// One line of the list.
    fileprivate var line: String {
        let whom = target.target.isEmpty ? "all" : target.target
        let state = replayable ? "can be replayed" : "expired or recalled"
        let id = thirdMessageID.isEmpty ? "oplog \(oplogID)" : thirdMessageID
        return "\(WallTime(milliseconds: deadAtMs).text)\t\(bizType)\t\(id)\tto \(whom)\ton \(deviceID)\t"
            + "handed out \(attempts) times\t\(state)"
    }
}
