import AMQP
import BusMessages
import Foundation
import Logging
import SwiftProtobuf
import Synchronization
import TestSupport

/// An operator that changes control data over the bus and chooses the revision that the change names, as the console
/// does.
final class Operator: Sendable {
    private final class Shared: Sendable {
        let replies = Mutex<[UInt64: Mss_Bus_V1_Reply]>([:])
        let isConnected = Mutex(false)
    }

    private let replies = ReplyQueue(.stored)
    private let client: AMQPClient
    private let shared: Shared

    private init(_ stack: Stack) throws {
        let shared = Shared()
        self.shared = shared
        let consumption = replies.consumption { bodies in
            for reply in bodies.compactMap({ Mss_Bus_V1_Replies.elements(of: $0) }).joined() {
                shared.replies.withLock { $0[reply.correlation] = reply }
            }
        }
        client = AMQPClient(
            configuration: try stack.broker(as: "tool"), topology: replies.topology, consumptions: [consumption],
            events: AMQPEvents(
                onConnected: { shared.isConnected.withLock { $0 = true } }, onDisconnected: {},
                onReturned: { _, _ in }), logger: Logger(label: "operator") { _ in SwiftLogNoOpLogHandler() })
    }

    /// Runs the body with a connected operator.
    static func connected(_ stack: Stack, _ body: (Operator) async throws -> Void) async throws {
        let person = try Operator(stack)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await person.client.run() }
            try await eventually("the operator is connected", within: .seconds(10)) {
                person.shared.isConnected.withLock { $0 }
            }
            try await body(person)
            group.cancelAll()
        }
    }

    /// Makes a change.
    func change(_ fill: (inout Mss_Bus_V1_ControlCommand) -> Void) async throws -> Mss_Bus_V1_ControlReply {
        try await ask(.control, fill).control
    }

    /// Reads an instance with one configuration.
    func snapshot(
        _ instance: String
    ) async throws -> (instance: Mss_Bus_V1_Instance, configuration: Mss_Bus_V1_SyncConfiguration) {
        let snapshot = try await ask(.snapshot) { $0.snapshot = .init() }.snapshot
        return (
            try requireValue(snapshot.instances.first { $0.instanceID == instance }, "the instance"),
            try requireValue(snapshot.configurations.first { $0.instanceID == instance }, "its configuration")
        )
    }

    private func ask(
        _ queue: CommandQueue, _ fill: (inout Mss_Bus_V1_ControlCommand) -> Void
    ) async throws -> Mss_Bus_V1_Reply {
        var command = Mss_Bus_V1_ControlCommand()
        fill(&command)
        command.actor = "console:second"
        command.correlation = UInt64.random(in: 1...UInt64.max)
        let correlation = command.correlation
        try client.send(
            Mss_Bus_V1_ControlCommands.body([command]),
            on: AMQPRoute(
                exchange: queue.exchange, routingKey: "", expiration: nil, isPersistent: false, isMandatory: true,
                replyTo: replies.key))
        try await eventually("the operator is answered", within: .seconds(10)) {
            shared.replies.withLock { $0[correlation] != nil }
        }
        return try requireValue(shared.replies.withLock { $0[correlation] }, "an answer")
    }
}
