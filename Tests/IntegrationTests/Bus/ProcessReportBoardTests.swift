import AMQP
import BusMessages
import CoreMetrics
import Logging
import ServiceLifecycle
import TestSupport
import Testing

@testable import ServiceKit

@Suite("Process reports over a broker", .enabled(if: TestBroker.port != nil, "needs MSS_TEST_AMQP_PORT"))
struct ProcessReportBoardTests {
    @Test("a console receives the reports of every tier's processes, with figures, also of a process that drains")
    func reports() async throws {
        try await OwnBroker.with { broker in
            let board = ProcessReportBoard()
            let console = Self.bus(.console, at: broker, board: board)
            let metrics = MetricsRegistry(service: "test", version: "1")
            metrics.makeCounter(label: "pushes", dimensions: []).increment(by: 7)
            let healths = BusTier.allCases.filter { $0 != .tool }.map { ($0, HealthState()) }
            let groups = healths.map { tier, health in
                health.set("amqp", isReady: true)
                let reporter = ProcessReporter(
                    service: tier.rawValue, version: "1", health: health, metrics: metrics)
                return ServiceGroup(
                    services: [Self.bus(tier, at: broker, reporter: reporter)], logger: Logger(label: "test"))
            }
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await console.run() }
                try await eventually("a connection", within: .seconds(30)) { console.isConnected }
                for group in groups { tasks.addTask { try await group.run() } }
                try await eventually("a report of each", within: .seconds(30)) {
                    board.reports.map(\.service) == healths.map(\.0.rawValue).sorted()
                }
                #expect(board.reports.allSatisfy { $0.isReady && $0.figures["mss_pushes_total"] == 7 })
                // In the same order as ServiceMain: before any service ends.
                for (_, health) in healths { health.drain() }
                for group in groups { await group.triggerGracefulShutdown() }
                var drained: Set<String> = []
                try await eventually("each says that it drains", within: .seconds(30)) {
                    let draining = board.reports.filter { !$0.isReady && $0.conditions["running"] == false }
                    drained.formUnion(draining.map(\.service))
                    return drained.count == healths.count
                }
                tasks.cancelAll()
            }
        }
    }

    private static func bus(
        _ tier: BusTier, at broker: OwnBroker, board: ProcessReportBoard? = nil, reporter: ProcessReporter? = nil
    ) -> MessageBus {
        MessageBus(
            configuration: AMQPConfiguration(
                host: "127.0.0.1", port: broker.port, user: tier.rawValue, password: "test"),
            extra: board?.topology ?? AMQPTopology(), consumptions: board.map { [$0.consumption] } ?? [],
            answers: [], reporter: reporter, logger: Logger(label: "test"))
    }
}
