import ArgumentParser
import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel
import ToolSupport

/// `mssctl rollout`: global pushes in stages.
struct RolloutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rollout", abstract: "Makes global pushes in stages: starts, widens, pauses and stops them.",
        discussion: """
            Each stage is a push for the devices that it adds. No device receives it twice, and an absent device \
            receives it later. Actions are written to the audit log (mssctl records). \(ToolSettings.amqpHint)
            """,
        subcommands: [Start.self, List.self, Show.self, Widen.self, Pause.self, Resume.self, Stop.self])

    /// The name of a roll-out.
    struct Name: ParsableArguments {
        @Option(help: "The instance.")
        var instance: String
        @Option(help: "The Sync ID.")
        var bizType: String
        @Option(help: "The thirdMsgId of the roll-out.")
        var id: String

        var model: Rollout.Name {
            Rollout.Name(instanceID: InstanceID(instance), bizType: BizType(bizType), id: ThirdMessageID(id))
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
        @Option(help: "Percentage of devices after each stage, rising to 100.")
        var stages = Stages(slots: RolloutPlan.standardStages)
        @Option(help: "Minutes until the next automatic stage; without it, use rollout widen.")
        var everyMinutes: UInt16?
        @OptionGroup var restriction: RestrictionArguments
        @Option(help: "End of validity, in milliseconds since 1970.")
        var validUntil: Int64?
        @Argument(help: "The payload.")
        var payload: String

        func run() async throws {
            guard restriction.os == nil || restriction.operatingSystem != nil else {
                throw ValidationError("--os must be iOS or Android")
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
        @Option(help: "Most lines, 1 to 200.")
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
            abstract: "One roll-out, with the number of devices of each stage.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name.model
            try await ControlClient.with { client in print(try await client.rollout(name).page) }
        }
    }

    struct Widen: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Makes the next stage now.")
        @OptionGroup var name: Name
        @Option(help: "Number of the stage, as in rollout show; an existing stage is not made again.")
        var stage: UInt32?

        func run() async throws {
            let (name, stage) = (name.model, stage)
            try await ControlClient.with { client in
                var wanted = stage
                if wanted == nil { wanted = UInt32(try await client.rollout(name).reached + 1) }
                try await RolloutCommand.change("widen", name, .widenToStage(wanted ?? 0), client)
            }
        }
    }

    struct Pause: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Pauses a roll-out until it is resumed.",
            discussion: "The wait for the next stage stops. Devices of existing stages still receive the push.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name.model
            try await ControlClient.with { try await RolloutCommand.change("pause", name, .pause(true), $0) }
        }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Resumes a roll-out, with the remaining wait.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name.model
            try await ControlClient.with { try await RolloutCommand.change("resume", name, .resume(true), $0) }
        }
    }

    struct Stop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ends a roll-out and recalls its stages: devices that have not stored it never receive it.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name.model
            try await ControlClient.with { try await RolloutCommand.change("stop", name, .stop(true), $0) }
        }
    }

    // MARK: Common steps

    private static func change(
        _ what: String, _ name: Rollout.Name, _ way: Mss_Bus_V1_ChangeRollout.OneOf_Way,
        _ client: ControlClient
    ) async throws {
        try await ask(what, client) {
            $0.changeRollout.name = name.bus
            $0.changeRollout.way = way
        }
    }

    private static func ask(
        _ what: String, _ client: ControlClient, _ fill: @Sendable (inout Mss_Bus_V1_OperationCommand) -> Void
    ) async throws {
        let reply = try await client.operate(fill).rollout
        guard reply.refusal.isEmpty else { throw ValidationError("\(what): \(reply.refusal)") }
        guard !reply.uncertain else { return try OperatorAnswer.uncertain.show() }
        guard let rollout = Rollout(bus: reply.rollout) else {
            throw ValidationError("this build does not know the state of the roll-out")
        }
        print((reply.unchanged ? "nothing to do: " : "") + rollout.line)
    }
}

extension Rollout {
    /// One line of the list.
    fileprivate var line: String {
        let share = RolloutPlan.percent(reached == 0 ? 0 : stages[reached - 1].share)
        var words = [
            startedAt.text, name.bizType.text, TerminalText.of(name.id.text), state.word,
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
            return "\(share)\toplog \(oplogID)\t\(TerminalText.of(stage.id.text))\tsent to \(stage.handedOut)"
                + "\tconfirmed by \(stage.confirmed)"
        }
        return ([line] + stages).joined(separator: "\n")
    }
}
