import AMQP
import BusMessages
import Logging
import ServiceKit
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing

@Suite("Answers over a broker", .enabled(if: TestBroker.port != nil, "needs MSS_TEST_AMQP_PORT"))
struct BusAnswerTests {
    /// Commands that a tier got: which numbers they have, and where their answers go.
    private final class Inbox: Sendable {
        private let got = Mutex<[(correlation: UInt64, replyTo: String)]>([])

        var all: [(correlation: UInt64, replyTo: String)] { got.withLock { $0 } }

        func take<E: Envelope>(
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

    @Test("SEC10: a validator that answers a question to the writers is not heard; the writer's answer counts")
    func forged() async throws {
        try await OwnBroker.with { broker in
            let (asked, validated) = (Inbox(), Inbox())
            let writer = bus(
                .writer, at: broker,
                [
                    AMQPConsumption(queue: CommandQueue.session.rawValue, prefetch: nil) {
                        asked.take($0, as: Mss_Bus_V1_SessionCommands.self, \.correlation)
                    }
                ])
            let validator = bus(
                .validator, at: broker,
                [
                    AMQPConsumption(queue: CommandQueue.validate.rawValue, prefetch: nil) {
                        validated.take($0, as: Mss_Bus_V1_ValidateCommands.self, \.correlation)
                    }
                ])
            let gateway = bus(.gateway, at: broker, answers: [.verdicts])
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
                // The forged one first: when the other has come, it has too.
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

    @Test("SEC10: a validator answers a console as it answers a gateway")
    func consoleAsks() async throws {
        try await OwnBroker.with { broker in
            let asked = Inbox()
            let validator = bus(
                .validator, at: broker,
                [
                    AMQPConsumption(queue: CommandQueue.validate.rawValue, prefetch: nil) {
                        asked.take($0, as: Mss_Bus_V1_ValidateCommands.self, \.correlation)
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

    @Test("R4: who asks where no queue is hears at once that nobody has it")
    func nobody() async throws {
        try await OwnBroker.with { broker in
            let console = bus(.console, at: broker, answers: [.verdicts])
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await console.run() }
                try await eventually("a connection", within: .seconds(30)) { console.isConnected }
                let error = await #expect(throws: BusError.self) {
                    // By its deadline it would end as unanswered.
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
