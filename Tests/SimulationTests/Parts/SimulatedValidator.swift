import AMQP
import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf

/// A session validator and its tenant. It answers with the current validity of a session, sometimes late or not at
/// all.
final class SimulatedValidator {
    let process: SimulatedProcess

    init(_ name: String, number: UInt64, broker: SimulatedBroker, history: History) {
        let process = SimulatedProcess(name, number: number, in: broker.simulation)
        self.process = process
        let inbox = Inbox()
        let bus = MessageBus(
            consumptions: [
                AMQPConsumption(queue: CommandQueue.validate.rawValue, prefetch: 256) { inbox.whenFilled($0) }
            ], replyKey: { "\($0.rawValue) \(process.id)" }, clock: process.clock, logger: process.logger,
            over: process.connecting(to: broker))
        let simulation = process.simulation
        inbox.whenFilled = { deliveries in
            for delivery in deliveries {
                for command in Mss_Bus_V1_ValidateCommands.elements(of: delivery.body) ?? [] {
                    // The tenant decides when it receives the request; the response takes some time.
                    simulation.after(simulation.pick(.milliseconds(1), .milliseconds(150))) {
                        let isValid = history.isValid(command.sessionID)
                        let isSilent = simulation.happens(0.05)
                        let isSlow = simulation.happens(0.1)
                        let took = simulation.pick(.milliseconds(1), isSlow ? .seconds(3) : .milliseconds(400))
                        simulation.after(took) {
                            process.perform {
                                guard !isSilent else { return }
                                bus.reply(
                                    .with {
                                        $0.correlation = command.correlation
                                        $0.validate.verdict = isValid ? .valid : .invalid
                                    }, to: delivery.replyTo ?? "", through: .verdicts)
                            }
                        }
                    }
                }
                bus.acknowledge([delivery], as: .accepted)
            }
        }
        process.every(.milliseconds(100)) { bus.expireRequests() }
    }

    // Unchecked: see Simulation.
    private final class Inbox: @unchecked Sendable {
        var whenFilled: ([AMQPDelivery]) -> Void = { _ in }
    }
}
