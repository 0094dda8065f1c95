import ArgumentParser
import BusMessages
import SwiftProtobuf
import SyncModel
import ToolSupport

/// `mssctl operations`: device operations and their results.
struct OperationsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "operations",
        abstract: "Lists device operations, and retries a dead one.",
        discussion: ToolSettings.amqpHint, subcommands: [List.self, Show.self, Retry.self, Days.self])

    /// The name of an operation.
    struct Name: ParsableArguments {
        @Option(help: "The instance.")
        var instance: String
        @Option(help: "Device of the operation.")
        var device: String
        @Option(help: "Id of the operation.")
        var id: String

        var bus: Mss_Bus_V1_DeviceOperationName {
            .with {
                $0.instanceID = instance
                $0.deviceID = device
                $0.operationID = id
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "One line for each operation, the newest first; then the number of waiting and dead operations.")
        @Option(help: "The instance.")
        var instance: String
        @Option(help: "Only this state: waiting, answered, accepted, refused or dead.")
        var state: String?
        @Option(help: "Only this device.")
        var device: String?
        @Option(help: "Only this user.")
        var user: String?
        @Option(help: "Most lines, 1 to 1000.")
        var limit = 100

        func run() async throws {
            var request = Mss_Bus_V1_ListDeviceOperations()
            if let state {
                guard let known = DeviceOperationState(word: state) else {
                    let words = DeviceOperationState.allCases.map(\.word).joined(separator: ", ")
                    throw ValidationError("--state must be one of \(words)")
                }
                request.state = UInt32(known.rawValue)
            }
            request.instanceID = instance
            request.deviceID = device ?? ""
            request.userID = user ?? ""
            request.limit = UInt32(clamping: limit)
            try await ControlClient.with(answers: [.relayed]) { [request] client in
                let reply = try await client.relay { $0.list = request }.deviceOperations
                for row in reply.operations { print(row.line) }
                for count in reply.counts {
                    print("\(Mss_Bus_V1_DeviceOperationRow.word(ofState: count.state)): \(count.operations)")
                }
            }
        }
    }

    struct Days: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Results of operations on each of the last 31 days (UTC), the newest first.")
        @Option(help: "The instance.")
        var instance: String

        func run() async throws {
            try await ControlClient.with(answers: [.relayed]) { [instance] client in
                let reply = try await client.relay {
                    $0.list.instanceID = instance
                    $0.list.limit = 1
                }.deviceOperations
                for day in reply.days {
                    let average = day.waitedMs / max(1, day.accepted + day.refused + day.dead)
                    let outcomes = "accepted \(day.accepted), refused \(day.refused), dead \(day.dead)"
                    let calls = "\(day.attempts) calls, answered after \(average) ms on average"
                    print("\(day.day)\t\(day.component)\t\(outcomes)\t\(calls)")
                }
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "One operation, without its body.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name.bus
            try await ControlClient.with(answers: [.relayed]) { client in
                let reply = try await client.relay { $0.show = name }.deviceOperation
                guard reply.hasOperation else {
                    throw ValidationError("there is no such operation; see mssctl operations list")
                }
                print(reply.operation.line)
            }
        }
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Retries a dead operation, after the operations that were stored since.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name.bus
            try await ControlClient.with(answers: [.relayed]) { client in
                let reply = try await client.relay { $0.retry = name }.deviceOperation
                guard reply.refusal.isEmpty else {
                    throw ValidationError("\(reply.refusal); see mssctl operations list --state dead")
                }
                print(reply.operation.line)
            }
        }
    }
}

extension Mss_Bus_V1_DeviceOperationRow {
    /// The name of a state, also for a state that this build does not know.
    fileprivate static func word(ofState state: UInt32) -> String {
        DeviceOperationState(rawValue: Int16(clamping: state))?.word ?? "state \(state)"
    }

    /// One line of the list.
    fileprivate var line: String {
        let what = "\(name) \(component)/\(TerminalText.of(entityKey))"
        let answer = code == 0 ? "" : "\tcode \(code)\(message.isEmpty ? "" : " \(TerminalText.of(message))")"
        return "\(WallTime(milliseconds: takenAtMs).text)\t\(Self.word(ofState: state))\t\(operationID)\t\(what)\t"
            + "of \(userID) on \(deviceID)\t\(attempts) attempts\(answer)"
    }
}
