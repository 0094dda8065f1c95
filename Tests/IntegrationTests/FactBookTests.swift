import AMQP
import BusMessages
import Logging
import ServiceKit
import SwiftProtobuf
import SyncModel
import Synchronization
import TestSupport
import Testing

@testable import OplogWriter

@Suite("Facts of a writer", .enabled(if: TestBroker.port != nil, "needs MSS_TEST_AMQP_PORT"))
struct FactBookTests {
    private func bus(_ tier: BusTier, at broker: OwnBroker, _ consumptions: [AMQPConsumption] = []) -> MessageBus {
        MessageBus(
            configuration: AMQPConfiguration(
                host: "127.0.0.1", port: broker.port, user: tier.rawValue, password: "test"),
            consumptions: consumptions, logger: Logger(label: "test"))
    }

    private func fact(_ oplogID: Int64) -> Mss_Bus_V1_Fact { .with { $0.accepted.oplogID = oplogID } }

    /// One that gives the ids of what it takes.
    private func aggregator(
        at broker: OwnBroker, _ take: @escaping @Sendable ([Int64]) -> Void
    ) -> MessageBus {
        bus(
            .statistics, at: broker,
            [
                AMQPConsumption(queue: Topology.factsQueue, prefetch: nil) { deliveries in
                    for delivery in deliveries {
                        take((Mss_Bus_V1_Facts.elements(of: delivery.body) ?? []).map(\.accepted.oplogID))
                    }
                }
            ])
    }

    @Test("facts go through a quorum queue as well") func quorum() async throws {
        try await OwnBroker.with(isReplicated: true) { broker in
            let writer = bus(.writer, at: broker)
            let taken = Mutex(0)
            let folded = Mutex<Set<Int64>>([])
            let aggregator = aggregator(at: broker) { ids in folded.withLock { $0.formUnion(ids) } }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await writer.run() }
                group.addTask { try await aggregator.run() }
                try await eventually("a connection", within: .seconds(30)) { writer.isConnected }
                for number in 1...100 {
                    try writer.record([fact(Int64(number))]) { isTaken in taken.withLock { $0 += isTaken ? 1 : 0 } }
                }
                try await eventually("all have come", within: .seconds(20)) {
                    taken.withLock { $0 } == 100 && folded.withLock { $0 } == Set(1...100)
                }
                group.cancelAll()
            }
        }
    }

    @Test("S1: what the full queue of facts refuses is kept and handed over once there is room")
    func full() async throws {
        try await OwnBroker.with(factsMax: 1) { broker in
            let writer = bus(.writer, at: broker)
            let book = FactBook(bus: writer)
            let answers = Mutex<[Bool]>([])
            let folded = Mutex<Set<Int64>>([])
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await writer.run() }
                group.addTask { await book.run() }
                try await eventually("a connection", within: .seconds(30)) { writer.isConnected }
                for number in 1...2 {
                    try writer.record([fact(Int64(number))]) { taken in answers.withLock { $0.append(taken) } }
                    try await eventually("a word of it", within: .seconds(10)) {
                        answers.withLock { $0.count == number }
                    }
                }
                #expect(answers.withLock { $0 } == [true, false])
                book.add([fact(3), fact(4)], of: [])
                try await eventually("it is refused", within: .seconds(10)) { book.keptFacts == 2 }
                let aggregator = aggregator(at: broker) { ids in folded.withLock { $0.formUnion(ids) } }
                group.addTask { try await aggregator.run() }
                // What is with a consumer does not count as waiting.
                try await eventually("what was kept comes", within: .seconds(20)) {
                    folded.withLock { $0 } == [1, 3, 4]
                }
                group.cancelAll()
            }
        }
    }
}
