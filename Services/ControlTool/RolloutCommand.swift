import ArgumentParser
import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel

/// `mssctl rollout`: global pushes that go out in stages.
struct RolloutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rollout", abstract: "Pushes to everybody in stages, and widens, pauses and stops that.",
        discussion: """
            Each stage is a push of its own for the devices that it adds: nobody gets it twice, and who was away gets it \
            later. What is done is recorded (mssctl records). \(ToolSettings.amqpHint)
            """,
        subcommands: [Start.self, List.self, Show.self, Widen.self, Pause.self, Resume.self, Stop.self])

    /// Which roll-out a command is about.
    struct Name: ParsableArguments {
        @Option(help: "The instance.")
        var instance: String
        @Option(help: "The Sync ID.")
        var bizType: String
        @Option(help: "The unique data id of the roll-out.")
        var id: String

        var bus: Mss_Bus_V1_RolloutName {
            .with {
                $0.instanceID = instance
                $0.bizType = bizType
                $0.thirdMessageID = id
            }
        }
    }

    /// Rising percentages.
    struct Stages: ExpressibleByArgument {
        let slots: [Int]

        init(slots: [Int]) { self.slots = slots }

        init?(argument: String) {
            guard let slots = RolloutPlan.stages(argument) else { return nil }
            self.slots = slots
        }

        var defaultValueDescription: String { slots.map(RolloutPlan.percent).joined(separator: ",") }
    }

    struct Start: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Makes the first stage of a global push.")
        @OptionGroup var name: Name
        @Option(help: "Percent of the devices that have it after each stage, rising to 100.")
        var stages = Stages(slots: RolloutPlan.standardStages)
        @Option(help: "Minutes after which the next stage comes by itself; none: rollout widen makes it.")
        var everyMinutes: UInt16?
        @OptionGroup var restriction: RestrictionArguments
        @Option(help: "Valid until this moment, in epoch milliseconds.")
        var validUntil: Int64?
        @Argument(help: "The payload.")
        var payload: String

        func run() async throws {
            guard restriction.os == nil || restriction.operatingSystem != nil else {
                throw ValidationError("--os takes iOS or Android")
            }
            let request = Mss_Bus_V1_StartRollout.with {
                $0.instanceID = name.instance
                $0.bizType = name.bizType
                $0.oplog.thirdMessageID = name.id
                $0.oplog.payload = Data(payload.utf8)
                $0.oplog.operatingSystem = Mss_Bus_V1_OperatingSystem(restriction.operatingSystem)
                $0.oplog.minimumVersion = restriction.minVersion ?? ""
                $0.oplog.maximumVersion = restriction.maxVersion ?? ""
                $0.oplog.validUntilMs = validUntil ?? 0
                $0.stages = stages.slots.map { UInt32($0) }
                $0.intervalSeconds = UInt32(everyMinutes ?? 0) * 60
            }
            try await ControlClient.with { try await RolloutCommand.ask("start", $0) { $0.startRollout = request } }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "One line for each roll-out, the newest first.")
        @Option(help: "The instance.")
        var instance: String
        @Option(help: "Lines at the most, 1 to 200.")
        var limit = 50

        func run() async throws {
            let request = Mss_Bus_V1_RolloutsRequest.with {
                $0.instanceID = instance
                $0.limit = UInt32(clamping: limit)
            }
            try await ControlClient.with { client in
                let reply = try await client.operate { $0.rollouts = request }
                for rollout in reply.rollouts.rollouts.compactMap({ Rollout(bus: $0) }) { print(rollout.line) }
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "One roll-out, and how many devices have each stage.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name.bus
            try await ControlClient.with { client in print(try await RolloutCommand.rollout(name, client).page) }
        }
    }

    struct Widen: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Makes the next stage now.")
        @OptionGroup var name: Name
        @Option(help: "The stage to make, as rollout show counts them; one that was made is not made again.")
        var stage: UInt32?

        func run() async throws {
            let (name, stage) = (name.bus, stage)
            try await ControlClient.with { client in
                var wanted = stage
                if wanted == nil { wanted = UInt32(try await RolloutCommand.rollout(name, client).reached + 1) }
                try await RolloutCommand.change("widen", name, .widenToStage(wanted ?? 0), client)
            }
        }
    }

    struct Pause: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "No further stage comes until it is resumed.",
            discussion: "The clock stands. Devices of the stages made go on getting theirs.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name.bus
            try await ControlClient.with { try await RolloutCommand.change("pause", name, .pause(true), $0) }
        }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Goes on, with the wait that was left.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name.bus
            try await ControlClient.with { try await RolloutCommand.change("resume", name, .resume(true), $0) }
        }
    }

    struct Stop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ends it for good, and recalls what was made: who has not stored it never gets it.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name.bus
            try await ControlClient.with { try await RolloutCommand.change("stop", name, .stop(true), $0) }
        }
    }

    // MARK: What all do

    private static func rollout(_ name: Mss_Bus_V1_RolloutName, _ client: ControlClient) async throws -> Rollout {
        let reply = try await client.operate {
            $0.rollouts.instanceID = name.instanceID
            $0.rollouts.name = name
        }
        guard let rollout = reply.rollouts.rollouts.first.flatMap({ Rollout(bus: $0) }) else {
            throw ValidationError("there is no such roll-out; see mssctl rollout list")
        }
        return rollout
    }

    private static func change(
        _ what: String, _ name: Mss_Bus_V1_RolloutName, _ way: Mss_Bus_V1_ChangeRollout.OneOf_Way,
        _ client: ControlClient
    ) async throws {
        try await ask(what, client) {
            $0.changeRollout.name = name
            $0.changeRollout.way = way
        }
    }

    private static func ask(
        _ what: String, _ client: ControlClient, _ fill: @Sendable (inout Mss_Bus_V1_OperationCommand) -> Void
    ) async throws {
        let reply = try await client.operate(fill).rollout
        guard reply.refusal.isEmpty else { throw ValidationError("\(what): \(reply.refusal)") }
        guard !reply.uncertain else { return try OperatorAnswer.uncertain.show() }
        guard let rollout = Rollout(bus: reply.rollout) else { throw ValidationError("this build does not know it") }
        print((reply.unchanged ? "nothing to do: " : "") + rollout.line)
    }
}

extension Rollout {
    /// One line of the list.
    fileprivate var line: String {
        let share = RolloutPlan.percent(reached == 0 ? 0 : stages[reached - 1].share)
        var words = [
            startedAt.text, name.bizType.text, OneLine.of(name.id.text), state.word,
            "stage \(reached) of \(stages.count), \(share) %",
        ]
        if let dueAt { words.append("next at \(dueAt.text)") }
        if let waitLeft { words.append("next \(waitLeft.components.seconds) s after it is resumed") }
        words.append("by \(startedBy)")
        return words.joined(separator: "\t")
    }

    /// The roll-out, then a line for each stage.
    fileprivate var page: String {
        let stages = stages.enumerated().map { number, stage in
            let share = "stage \(number + 1)\t\(RolloutPlan.percent(stage.share)) %"
            guard let oplogID = stage.oplogID else { return "\(share)\tnot made" }
            return "\(share)\toplog \(oplogID)\t\(OneLine.of(stage.id.text))\tsent to \(stage.handedOut)"
                + "\tconfirmed by \(stage.confirmed)"
        }
        return ([line] + stages).joined(separator: "\n")
    }
}
