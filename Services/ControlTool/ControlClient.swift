import AMQP
import ArgumentParser
import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel

/// The tool as a client of the oplog writers' control queue.
struct ControlClient: Sendable {
    /// How long a writer that is still starting is waited for.
    private static let patience = Duration.seconds(20)
    /// A gateway that cannot be reached has lost its lease after this, and holds back everything.
    private static let inForceLimit = Limits.gatewayLease + .seconds(4)

    private let bus: MessageBus

    /// Runs the body with a connection to the broker that the environment names.
    ///
    /// - Parameters:
    ///   - answers: those that do not come straight back and that the body asks for.
    ///   - board: hears how the processes stand; nil: nobody does.
    static func with<Outcome: Sendable>(
        answers: [AnswerExchange] = [], board: ProcessReportBoard? = nil,
        _ body: @Sendable (ControlClient) async throws -> Outcome
    ) async throws -> Outcome {
        let settings = try ToolSettings.read(ProcessSettings.amqpKeys)
        let bus = MessageBus(
            configuration: AMQPConfiguration(settings, connectionName: "mssctl"),
            extra: board?.topology ?? AMQPTopology(), consumptions: board.map { [$0.consumption] } ?? [],
            answers: answers, logger: ToolSettings.logger())
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await bus.run() }
            defer { group.cancelAll() }
            return try await body(ControlClient(bus: bus))
        }
    }

    /// Whether the broker lets the tool in, in time.
    func isConnected(within limit: Duration) async -> Bool {
        let deadline = ContinuousClock.now + limit
        while !bus.isConnected {
            guard .now < deadline, (try? await Task.sleep(for: .milliseconds(50))) != nil else { return false }
        }
        return true
    }

    /// How the queues stand that processes share.
    func queueDepths() async -> Result<[String: AMQPQueueDepth], BusError> {
        do throws(BusError) { return .success(try await bus.queueDepths()) } catch { return .failure(error) }
    }

    /// Every instance and configuration, by name.
    func snapshot() async throws -> (instances: [Instance], configurations: [SyncConfiguration]) {
        let reply = try await ask(.snapshot) { $0.snapshot = .init() }
        return (
            reply.snapshot.instances.map { Instance(bus: $0) }.sorted { $0.id.text < $1.id.text },
            reply.snapshot.configurations.compactMap { SyncConfiguration(bus: $0) }
                .sorted { ($0.instanceID.text, $0.bizType.text) < ($1.instanceID.text, $1.bizType.text) }
        )
    }

    /// One configuration.
    func configuration(_ instance: String, _ bizType: String) async throws -> SyncConfiguration {
        let all = try await snapshot().configurations
        guard let found = all.first(where: { $0.instanceID.text == instance && $0.bizType.text == bizType }) else {
            throw ValidationError("there is no configuration \(bizType) of \(instance); see mssctl config list")
        }
        return found
    }

    /// One instance.
    func instance(_ id: String) async throws -> Instance {
        guard let found = try await snapshot().instances.first(where: { $0.id.text == id }) else {
            throw ValidationError("there is no instance \(id); see mssctl instance list")
        }
        return found
    }

    /// A page of operation records.
    func records(_ request: Mss_Bus_V1_RecordsRequest) async throws -> RecordPage {
        RecordPage(bus: try await ask { $0.records = request }.records)
    }

    /// What a tenant says of a session now.
    func verdict(of session: String, user: String, instance: String) async throws -> Mss_Bus_V1_ValidateReply {
        try await ask(.validate, as: Mss_Bus_V1_ValidateCommands.self) { correlation in
            .with {
                $0.correlation = correlation
                $0.instanceID = instance
                $0.userID = user
                $0.sessionID = session
            }
        }.validate
    }

    /// Makes one change and says so once it is in force on every gateway (spec D17).
    ///
    /// - Parameters:
    ///   - decidesCallers: whether it changes who may call the API. Ingests hear of it at once; one that does not stops
    ///     taking calls after `Limits.controlAge`, and that is waited for.
    ///   - isRepeatable: whether it may be asked for again when no answer came.
    ///   - onMade: told the answer as soon as it is there.
    func change(
        _ what: String, decidesCallers: Bool = false, isRepeatable: Bool = true,
        _ fill: @Sendable (inout Mss_Bus_V1_ControlCommand) -> Void,
        onMade: (Mss_Bus_V1_ControlReply) -> Void = { _ in }
    ) async throws {
        let actor = Self.actor
        let reply = try await ask(isRepeatable: isRepeatable) { command in
            command.by = actor
            fill(&command)
        }
        guard reply.control.refusal.isEmpty else { throw ValidationError("\(what): \(reply.control.refusal)") }
        onMade(reply.control)
        let version = reply.control.version
        let made = ContinuousClock.now
        let deadline = made + Self.inForceLimit
        while true {
            let reply = try await ask { $0.awaitVersion.version = version }.control
            if reply.gatewaysBehind.isEmpty, !reply.gatewaysUnknown { break }
            guard .now < deadline else {
                throw ValidationError(
                    "\(what): made as version \(version), but not in force everywhere yet: \(Self.missing(reply))")
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        if decidesCallers { try await Task.sleep(until: made + Limits.controlAge, clock: .continuous) }
        print("\(what): in force, version \(version)")
    }

    private static func missing(_ reply: Mss_Bus_V1_ControlReply) -> String {
        reply.gatewaysUnknown
            ? "the database has just come back, and who is connected is not known again"
            : "these gateways do not go by it: \(reply.gatewaysBehind.joined(separator: ", "))"
    }

    /// Asks about pushes and devices.
    func operate(
        _ fill: @Sendable (inout Mss_Bus_V1_OperationCommand) -> Void
    ) async throws -> Mss_Bus_V1_Reply {
        let actor = Self.actor
        return try await ask(.people, as: Mss_Bus_V1_OperationCommands.self) { correlation in
            var command = Mss_Bus_V1_OperationCommand()
            command.correlation = correlation
            command.by = actor
            fill(&command)
            return command
        }
    }

    /// Asks about operations of devices.
    func relay(_ fill: @Sendable (inout Mss_Bus_V1_RelayCommand) -> Void) async throws -> Mss_Bus_V1_Reply {
        let actor = Self.actor
        return try await ask(.relay, as: Mss_Bus_V1_RelayCommands.self) { correlation in
            var command = Mss_Bus_V1_RelayCommand()
            command.correlation = correlation
            command.by = actor
            fill(&command)
            return command
        }
    }

    private func ask(
        _ queue: CommandQueue = .control, isRepeatable: Bool = true,
        _ fill: @Sendable (inout Mss_Bus_V1_ControlCommand) -> Void
    ) async throws -> Mss_Bus_V1_Reply {
        try await ask(queue, as: Mss_Bus_V1_ControlCommands.self, isRepeatable: isRepeatable) { correlation in
            var command = Mss_Bus_V1_ControlCommand()
            command.correlation = correlation
            fill(&command)
            return command
        }
    }

    /// Who the records name.
    static var actor: OperationActor {
        OperationActor("mssctl:\(NSUserName())", from: ProcessInfo.processInfo.hostName)
    }

    private func ask<E: Envelope>(
        _ queue: CommandQueue, as envelope: E.Type, isRepeatable: Bool = true, _ build: @Sendable (UInt64) -> E.Element
    ) async throws -> Mss_Bus_V1_Reply where E.Element: BusCommand {
        let deadline = ContinuousClock.now + Self.patience
        while true {
            do throws(BusError) {
                return try await bus.request(queue, as: envelope, build)
            } catch {
                guard isRepeatable || error.code != .unanswered else {
                    throw ValidationError("no answer came (\(error)): it may have been done; look before you repeat it")
                }
                guard error.code == .unavailable || error.code == .unanswered, .now < deadline else {
                    let who =
                        switch queue.consumer {
                        case .validator: "session validator"
                        case .relay: "relay"
                        default: "oplog writer"
                        }
                    throw ValidationError("no \(who) answered: \(error); are broker and \(who)s running?")
                }
                try await Task.sleep(for: .milliseconds(200))
            }
        }
    }
}
