import AMQP
import BusMessages
import Foundation
import Logging
import SwiftProtobuf
import Synchronization
import TestSupport

/// Sends requests to the validator as a gateway does, each in a body of its own, and records the replies.
final class ValidationCaller: Sendable {
    /// A reply and its time.
    struct Answer: Sendable {
        let instance: String
        let verdict: Mss_Bus_V1_Verdict
        let duration: Duration
    }

    private struct State {
        var asked: [UInt64: (instance: String, at: ContinuousClock.Instant)] = [:]
        var answers: [Answer] = []
        var isConnected = false
    }

    private let client: AMQPClient
    private let state: Shared
    private let replies = ReplyQueue(.verdicts)

    private final class Shared: Sendable {
        let state = Mutex(State())

        func record(_ bodies: [[UInt8]]) {
            let replies = bodies.compactMap { Mss_Bus_V1_Replies.elements(of: $0) }.joined()
            state.withLock { state in
                for reply in replies {
                    guard let (instance, at) = state.asked.removeValue(forKey: reply.correlation) else { continue }
                    state.answers.append(
                        Answer(instance: instance, verdict: reply.validate.verdict, duration: .now - at))
                }
            }
        }
    }

    private init(_ stack: Stack) throws {
        var configuration = try stack.broker(as: "gateway")
        configuration.packedBodyBytes = 0
        let shared = Shared()
        state = shared
        client = AMQPClient(
            configuration: configuration, topology: replies.topology,
            consumptions: [replies.consumption { shared.record($0) }],
            events: AMQPEvents(
                onConnected: { shared.state.withLock { $0.isConnected = true } }, onDisconnected: {},
                onReturned: { _, _ in }),
            logger: Logger(label: "caller") { _ in SwiftLogNoOpLogHandler() })
    }

    /// Runs the body with a connected caller.
    static func connected(_ stack: Stack, _ body: (ValidationCaller) async throws -> Void) async throws {
        let caller = try ValidationCaller(stack)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await caller.client.run() }
            try await eventually("the caller is connected", within: .seconds(10)) {
                caller.state.state.withLock { $0.isConnected }
            }
            try await body(caller)
            group.cancelAll()
        }
    }

    /// The replies so far, in order.
    var answers: [Answer] { state.state.withLock { $0.answers } }

    /// Sends one request and does not wait.
    func ask(_ instance: String, session: String) throws {
        let correlation = UInt64.random(in: 1...UInt64.max)
        state.state.withLock { $0.asked[correlation] = (instance, .now) }
        let command = Mss_Bus_V1_ValidateCommand.with {
            $0.correlation = correlation
            $0.instanceID = instance
            $0.userID = "user"
            $0.sessionID = session
        }
        try client.send(
            Mss_Bus_V1_ValidateCommands.body([command]),
            on: AMQPRoute(
                exchange: CommandQueue.validate.exchange, routingKey: "", expiration: nil, isPersistent: false,
                isMandatory: true, replyTo: replies.key))
    }

    /// Sends one request and waits for its reply.
    func answer(_ instance: String, session: String) async throws -> Answer {
        let before = answers.count { $0.instance == instance }
        try ask(instance, session: session)
        try await eventually("\(instance) is answered", within: .seconds(10)) {
            answers.count { $0.instance == instance } > before
        }
        return try requireValue(answers.last { $0.instance == instance }, "an answer")
    }
}
