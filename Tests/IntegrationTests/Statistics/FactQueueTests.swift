import AMQP
import BusMessages
import Logging
import ServiceKit
import SwiftProtobuf
import SyncModel
import Synchronization
import TestSupport
import Testing

@Suite("The queue of facts", .enabled(if: TestBroker.port != nil, "needs MSS_TEST_AMQP_PORT"))
struct FactQueueTests {
    private func bus(_ tier: BusTier, at broker: OwnBroker, _ consumptions: [AMQPConsumption] = []) -> MessageBus {
        MessageBus(
            configuration: AMQPConfiguration(
                host: "127.0.0.1", port: broker.port, user: tier.rawValue, password: "test"),
            consumptions: consumptions, answers: [], logger: Logger(label: "test"))
    }

    private func fact(_ oplogID: Int64) -> Mss_Bus_V1_Fact { .with { $0.confirmed.oplogIds = [oplogID] } }

    /// Whether the broker confirms a fact.
    private func isTaken(_ oplogID: Int64, from bus: MessageBus) async throws -> Bool {
        let answer = Mutex<Bool?>(nil)
        try bus.record([fact(oplogID)]) { isTaken in answer.withLock { $0 = isTaken } }
        try await eventually("an answer", within: .seconds(10)) { answer.withLock { $0 != nil } }
        return answer.withLock { $0 == true }
    }

    /// Starts an aggregator that reports the ids of the facts that it received.
    private func aggregator(
        at broker: OwnBroker, _ take: @escaping @Sendable ([Int64]) -> Void
    ) -> MessageBus {
        bus(
            .statistics, at: broker,
            [
                AMQPConsumption(queue: Topology.factsQueue, prefetch: nil) { deliveries in
                    for delivery in deliveries {
                        take((Mss_Bus_V1_Facts.elements(of: delivery.body) ?? []).flatMap(\.confirmed.oplogIds))
                    }
                }
            ])
    }

    @Test("facts also pass through a quorum queue") func quorum() async throws {
        try await OwnBroker.with(isReplicated: true) { broker in
            let gateway = bus(.gateway, at: broker)
            let taken = Mutex(0)
            let folded = Mutex<Set<Int64>>([])
            let aggregator = aggregator(at: broker) { ids in folded.withLock { $0.formUnion(ids) } }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await gateway.run() }
                group.addTask { try await aggregator.run() }
                try await eventually("a connection", within: .seconds(30)) { gateway.isConnected }
                for number in 1...100 {
                    try gateway.record([fact(Int64(number))]) { isTaken in taken.withLock { $0 += isTaken ? 1 : 0 } }
                }
                try await eventually("all have arrived", within: .seconds(20)) {
                    taken.withLock { $0 } == 100 && folded.withLock { $0 } == Set(1...100)
                }
                group.cancelAll()
            }
        }
    }

    @Test("S1: a full queue of facts rejects new bodies, and accepts them again when there is space")
    func full() async throws {
        try await OwnBroker.with(factsMax: 1) { broker in
            let gateway = bus(.gateway, at: broker)
            let folded = Mutex<Set<Int64>>([])
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await gateway.run() }
                try await eventually("a connection", within: .seconds(30)) { gateway.isConnected }
                #expect(try await isTaken(1, from: gateway))
                #expect(try await isTaken(2, from: gateway) == false)
                let aggregator = aggregator(at: broker) { ids in folded.withLock { $0.formUnion(ids) } }
                group.addTask { try await aggregator.run() }
                // Bodies at a consumer do not count as waiting.
                try await eventually("the first has arrived", within: .seconds(20)) { folded.withLock { $0 } == [1] }
                #expect(try await isTaken(2, from: gateway))
                try await eventually("the second arrives", within: .seconds(20)) { folded.withLock { $0 } == [1, 2] }
                group.cancelAll()
            }
        }
    }
}
