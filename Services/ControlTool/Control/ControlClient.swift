import AMQP
import ArgumentParser
import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel
import ToolSupport

/// A connection to the broker for one command of the tool. It repeats requests, and waits until a change is in force.
struct ControlClient: Sendable {
    /// Time for which requests are repeated, because a writer can still be starting.
    private static let retryLimit = Duration.seconds(20)
    /// After this time an unreachable gateway has lost its lease and sends no data.
    private static let inForceLimit = Limits.gatewayLease + .seconds(4)

    private let bus: MessageBus
    private let commands: CommandClient

    private init(bus: MessageBus) {
        self.bus = bus
        commands = CommandClient(bus: bus, actor: Self.actor)
    }

    /// Runs the body with a connection to the configured broker.
    ///
    /// - Parameters:
    /// - answers: the exchanges of the replies that the body waits for, other than those of oplog writers.
    /// - board: receives the reports of all processes. The value is nil for no reports.
    static func with<Outcome: Sendable>(
        answers: [AnswerExchange] = [], board: ProcessReportBoard? = nil,
        _ body: @Sendable (ControlClient) async throws -> Outcome
    ) async throws -> Outcome {
        let settings = try ToolSettings.read(ProcessSettings.amqpKeys)
        let bus = MessageBus(
            configuration: AMQPConfiguration(settings, connectionName: "mssctl"),
            extra: board?.topology ?? AMQPTopology(), consumptions: board.map { [$0.consumption] } ?? [],
            answers: [.stored] + answers, logger: ToolSettings.logger())
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await bus.run() }
            defer { group.cancelAll() }
            return try await body(ControlClient(bus: bus))
        }
    }

    /// Waits until the broker accepts the connection. Returns false after the time limit.
    func isConnected(within limit: Duration) async -> Bool {
        let deadline = ContinuousClock.now + limit
        while !bus.isConnected {
            guard .now < deadline, (try? await Task.sleep(for: .milliseconds(50))) != nil else { return false }
        }
        return true
    }

    /// Depths of the shared queues.
    func queueDepths() async -> Result<[String: AMQPQueueDepth], BusError> {
        do throws(BusError) { return .success(try await bus.queueDepths()) } catch { return .failure(error) }
    }

    /// All instances and configurations, sorted by name.
    func snapshot() async throws -> (instances: [Instance], configurations: [SyncConfiguration]) {
        let reply = try await repeating(to: .writer) { () throws(BusError) in
            try await commands.control(on: .snapshot) { $0.snapshot = .init() }
        }
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

    /// A page of audit records.
    func records(_ request: Mss_Bus_V1_RecordsRequest) async throws -> RecordPage {
        RecordPage(bus: try await control { $0.records = request }.records)
    }

    /// Requests a verdict on a session from the tenant.
    func verdict(of session: String, user: String, instance: String) async throws -> Mss_Bus_V1_ValidateReply {
        try await repeating(to: .validator) { () throws(BusError) in
            try await commands.verdict(of: session, user: user, instance: instance)
        }
    }

    /// Makes one change, and waits until it is in force on every gateway (D17).
    ///
    /// - Parameters:
    /// - decidesCallers: whether the change affects access to the API. Then the call also waits for
    ///   `Limits.controlAge`. An ingest that has not received the change accepts no calls after that time.
    /// - isRepeatable: whether the command is repeated after a missing reply.
    /// - onMade: receives the reply at once.
    func change(
        _ what: String, decidesCallers: Bool = false, isRepeatable: Bool = true,
        _ fill: @Sendable (inout Mss_Bus_V1_ControlCommand) -> Void,
        onMade: (Mss_Bus_V1_ControlReply) -> Void = { _ in }
    ) async throws {
        let reply = try await control(isRepeatable: isRepeatable, fill).control
        guard reply.refusal.isEmpty else { throw ValidationError("\(what): \(reply.refusal)") }
        onMade(reply)
        let version = reply.version
        let made = ContinuousClock.now
        let deadline = made + Self.inForceLimit
        while true {
            let reply = try await control { $0.awaitVersion.version = version }.control
            if reply.gatewaysBehind.isEmpty, !reply.gatewaysUnknown { break }
            guard .now < deadline else {
                throw ValidationError(
                    "\(what): made as version \(version), but not yet in force everywhere: \(Self.missing(reply))")
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        if decidesCallers { try await Task.sleep(until: made + Limits.controlAge, clock: .continuous) }
        print("\(what): in force, version \(version)")
    }

    private static func missing(_ reply: Mss_Bus_V1_ControlReply) -> String {
        reply.gatewaysUnknown
            ? "the lease record is incomplete after a restart of the database"
            : "gateways with an older version: \(reply.gatewaysBehind.joined(separator: ", "))"
    }

    /// Sends a backend query or a command about devices.
    func operate(
        _ fill: @Sendable (inout Mss_Bus_V1_OperationCommand) -> Void
    ) async throws -> Mss_Bus_V1_Reply {
        try await repeating(to: .writer) { () throws(BusError) in try await commands.operate(fill) }
    }

    /// One roll-out with its figures.
    func rollout(_ name: Rollout.Name) async throws -> Rollout {
        let rollout = try await repeating(to: .writer) { () throws(BusError) in try await commands.rollout(name) }
        guard let rollout else { throw ValidationError("there is no such roll-out; see mssctl rollout list") }
        return rollout
    }

    /// Sends a command about device operations.
    func relay(_ fill: @Sendable (inout Mss_Bus_V1_RelayCommand) -> Void) async throws -> Mss_Bus_V1_Reply {
        try await repeating(to: .relay) { () throws(BusError) in try await commands.relay(fill) }
    }

    private func control(
        isRepeatable: Bool = true, _ fill: @Sendable (inout Mss_Bus_V1_ControlCommand) -> Void
    ) async throws -> Mss_Bus_V1_Reply {
        try await repeating(to: .writer, isRepeatable: isRepeatable) { () throws(BusError) in
            try await commands.control(fill)
        }
    }

    /// The actor of audit records.
    static var actor: OperationActor {
        OperationActor("mssctl:\(NSUserName())", from: ProcessInfo.processInfo.hostName)
    }

    /// Sends a request again until its consumer replies, at most for `retryLimit`.
    private func repeating<Reply>(
        to consumer: BusTier, isRepeatable: Bool = true, _ request: () async throws(BusError) -> Reply
    ) async throws -> Reply {
        let deadline = ContinuousClock.now + Self.retryLimit
        while true {
            do throws(BusError) {
                return try await request()
            } catch {
                guard isRepeatable || error.code != .unanswered else {
                    throw ValidationError(
                        "no reply (\(error)): the command may have been executed; check the result before you repeat it"
                    )
                }
                guard error.code == .unavailable || error.code == .unanswered, .now < deadline else {
                    let who =
                        switch consumer {
                        case .validator: "session validator"
                        case .relay: "relay"
                        default: "oplog writer"
                        }
                    throw ValidationError(
                        "no reply from a \(who): \(error); check that the broker and a \(who) are running")
                }
                try await Task.sleep(for: .milliseconds(200))
            }
        }
    }
}
