import AMQP
import BusMessages
import Foundation
import Logging
import ServiceKit
import SyncModel
import Synchronization
import TestSupport
import Testing

@Suite("Nonce claims over the broker", .enabled(if: TestBroker.port != nil, "needs MSS_TEST_AMQP_PORT"))
struct NonceClaimTests {
    /// The way in which an oplog writer does not serve a claim.
    enum Fault: CaseIterable {
        /// No reply, like a killed writer.
        case killed
        /// A failure whose outcome is unknown, like a writer whose database does not answer.
        case failed
    }

    /// An oplog writer that does not serve the first claim.
    private final class Writer: Sendable {
        private let fault: Fault
        private let state = Mutex<(bus: MessageBus?, claims: [Data])>((nil, []))

        init(_ fault: Fault) { self.fault = fault }

        /// The received claims, reduced to the fields that a repeat has in common with the first.
        var claims: [Data] { state.withLock { $0.claims } }

        func answer(through bus: MessageBus) { state.withLock { $0.bus = bus } }

        func took(_ deliveries: [AMQPDelivery]) {
            let bus = state.withLock { $0.bus }
            for delivery in deliveries {
                for command in Mss_Bus_V1_AdmissionCommands.elements(of: delivery.body) ?? [] {
                    let isFirst = state.withLock { state in
                        state.claims.append(command.claimNonce.claim)
                        return state.claims.count == 1
                    }
                    guard !isFirst || fault == .failed, let replyTo = delivery.replyTo else { continue }
                    var reply = Mss_Bus_V1_Reply()
                    reply.correlation = command.correlation
                    if isFirst {
                        reply.failure.reason = "no reply in time"
                    } else {
                        reply.claim.fresh = true
                    }
                    bus?.reply(reply, to: replyTo)
                }
            }
            bus?.acknowledge(deliveries, as: .accepted)
        }
    }

    private func bus(_ broker: OwnBroker, as user: String, _ consumptions: [AMQPConsumption] = []) -> MessageBus {
        MessageBus(
            configuration: AMQPConfiguration(host: "127.0.0.1", port: broker.port, user: user, password: "test"),
            consumptions: consumptions, answers: user == "writer" ? [] : [.stored], logger: Logger(label: "test"))
    }

    @Test(
        "SEC6: an unanswered or failed claim is sent once more, as the same claim, for every waiting request; it counts",
        arguments: Fault.allCases)
    func repeats(fault: Fault) async throws {
        try await OwnBroker.with { broker in
            for user in ["gateway", "ingest"] {
                let writer = Writer(fault)
                let queue = CommandQueue.admission.rawValue
                let answering = bus(
                    broker, as: "writer", [AMQPConsumption(queue: queue, prefetch: 10) { writer.took($0) }])
                writer.answer(through: answering)
                let asking = bus(broker, as: user)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for bus in [answering, asking] { group.addTask { try await bus.run() } }
                    try await eventually("connections", within: .seconds(10)) {
                        answering.isConnected && asking.isConnected
                    }
                    let answers = Mutex<[Bool?]>([])
                    asking.claimNonce([1, 2], of: "k", expiresAt: WallTime(milliseconds: 1)) { result in
                        let isFresh = try? result.get()
                        answers.withLock { $0.append(isFresh) }
                    }
                    try await eventually("the answer", within: .seconds(10)) { answers.withLock { !$0.isEmpty } }
                    #expect(answers.withLock { $0 } == [true])
                    #expect(writer.claims.count == 2 && Set(writer.claims).count == 1)
                    #expect(try await asking.claimNonce([3], of: "k", expiresAt: WallTime(milliseconds: 1)))
                    #expect(writer.claims.count == 3 && Set(writer.claims).count == 2)
                    group.cancelAll()
                }
            }
        }
    }
}
