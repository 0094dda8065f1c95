import AMQP
import BusMessages
import Logging
import ServiceKit
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing

@Suite("Replies over a broker", .enabled(if: TestBroker.port != nil, "needs MSS_TEST_AMQP_PORT"))
struct BusAnswerTests {
    /// The commands that a tier received: their numbers and reply routes.
    private final class Inbox: Sendable {
        private let got = Mutex<[(correlation: UInt64, replyTo: String)]>([])

        var all: [(correlation: UInt64, replyTo: String)] { got.withLock { $0 } }

        func record<E: Envelope>(
            _ deliveries: [AMQPDelivery], as _: E.Type, _ correlation: (E.Element) -> UInt64
        ) {
            for delivery in deliveries {
                for command in E.elements(of: delivery.body) ?? [] {
                    got.withLock { $0.append((correlation(command), delivery.replyTo ?? "")) }
                }
            }
        }
    }

    private func bus(
        _ tier: BusTier, at broker: OwnBroker, _ consumptions: [AMQPConsumption] = [], answers: [AnswerExchange] = []
    ) -> MessageBus {
        MessageBus(
            configuration: AMQPConfiguration(
                host: "127.0.0.1", port: broker.port, user: tier.rawValue, password: "test"),
            consumptions: consumptions, answers: answers, logger: Logger(label: "test"))
    }

    @Test("SEC10: a validator's reply to a request to the writers is ignored; the writer's reply counts")
    func forged() async throws {
        try await OwnBroker.with { broker in
            let (asked, validated) = (Inbox(), Inbox())
            let writer = bus(
                .writer, at: broker,
                [
                    AMQPConsumption(queue: CommandQueue.session.rawValue, prefetch: nil) {
                        asked.record($0, as: Mss_Bus_V1_SessionCommands.self, \.correlation)
                    }
                ])
            let validator = bus(
                .validator, at: broker,
                [
                    AMQPConsumption(queue: CommandQueue.validate.rawValue, prefetch: nil) {
                        validated.record($0, as: Mss_Bus_V1_ValidateCommands.self, \.correlation)
                    }
                ])
            let gateway = bus(.gateway, at: broker, answers: [.stored, .verdicts])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for bus in [writer, validator, gateway] {
                    group.addTask { try await bus.run() }
                    try await eventually("a connection", within: .seconds(30)) { bus.isConnected }
                }
                async let session = gateway.request(
                    .session, as: Mss_Bus_V1_SessionCommands.self, timeout: .seconds(60)
                ) { number in .with { $0.correlation = number } }
                try await eventually("the writer is asked", within: .seconds(10)) { asked.all.count == 1 }
                async let verdict = gateway.request(
                    .validate, as: Mss_Bus_V1_ValidateCommands.self, timeout: .seconds(60)
                ) { number in .with { $0.correlation = number } }
                try await eventually("the validator is asked", within: .seconds(10)) { validated.all.count == 1 }
                // The forged reply is sent first, so it has arrived when the true one arrives.
                validator.reply(
                    .with {
                        $0.correlation = asked.all[0].correlation
                        $0.session.connectionEpoch = 666
                    }, to: validated.all[0].replyTo, through: .verdicts)
                validator.reply(
                    .with {
                        $0.correlation = validated.all[0].correlation
                        $0.validate.verdict = .valid
                    }, to: validated.all[0].replyTo, through: .verdicts)
                #expect(try await verdict.validate.verdict == .valid)
                writer.reply(
                    .with {
                        $0.correlation = asked.all[0].correlation
                        $0.session.connectionEpoch = 7
                    }, to: asked.all[0].replyTo)
                #expect(try await session.session.connectionEpoch == 7)
                group.cancelAll()
            }
        }
    }

    @Test("SEC10: a validator replies to a console in the same way as to a gateway")
    func consoleAsks() async throws {
        try await OwnBroker.with { broker in
            let asked = Inbox()
            let validator = bus(
                .validator, at: broker,
                [
                    AMQPConsumption(queue: CommandQueue.validate.rawValue, prefetch: nil) {
                        asked.record($0, as: Mss_Bus_V1_ValidateCommands.self, \.correlation)
                    }
                ])
            let console = bus(.console, at: broker, answers: [.verdicts])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for bus in [validator, console] {
                    group.addTask { try await bus.run() }
                    try await eventually("a connection", within: .seconds(30)) { bus.isConnected }
                }
                async let verdict = console.request(
                    .validate, as: Mss_Bus_V1_ValidateCommands.self, timeout: .seconds(60)
                ) { number in .with { $0.correlation = number } }
                try await eventually("the validator is asked", within: .seconds(10)) { asked.all.count == 1 }
                validator.reply(
                    .with {
                        $0.correlation = asked.all[0].correlation
                        $0.validate.verdict = .invalid
                        $0.validate.reason = "signed out"
                    }, to: asked.all[0].replyTo, through: CommandQueue.validate.answers)
                #expect(try await verdict.validate.reason == "signed out")
                group.cancelAll()
            }
        }
    }

    @Test("R4: a request without a queue fails at once, because no consumer exists")
    func nobody() async throws {
        try await OwnBroker.with { broker in
            let console = bus(.console, at: broker, answers: [.verdicts])
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await console.run() }
                try await eventually("a connection", within: .seconds(30)) { console.isConnected }
                let error = await #expect(throws: BusError.self) {
                    // At its deadline, the request would end as unanswered.
                    try await console.request(
                        .validate, as: Mss_Bus_V1_ValidateCommands.self, timeout: .seconds(60)
                    ) { number in .with { $0.correlation = number } }
                }
                #expect(error?.code == .unavailable)
                group.cancelAll()
            }
        }
    }
}
