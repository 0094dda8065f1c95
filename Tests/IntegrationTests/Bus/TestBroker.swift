import AMQP
import Foundation
import Logging
import Synchronization
import TestSupport

/// One queue on the test server, with one client that publishes to it and consumes from it.
final class TestBroker: Sendable {
    /// The server's port, `MSS_TEST_AMQP_PORT`; without it, the tests are skipped.
    static let port = ProcessInfo.processInfo.environment["MSS_TEST_AMQP_PORT"].flatMap { Int($0) }

    private struct State {
        var client: AMQPClient?
        var deliveries: [AMQPDelivery] = []
        var returned: [String] = []
        var connections = 0
        var (written, read) = (0, 0)
    }

    private let queue: String
    private let settlement: AMQPSettlement?
    private let exchange: String?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - settlement: nil: deliveries are recorded and never acknowledged.
    ///   - exchange: an exchange that is bound to the queue under the queue's name.
    init(_ queue: String, settlement: AMQPSettlement? = .accepted, behind exchange: String? = nil) {
        self.queue = queue
        self.settlement = settlement
        self.exchange = exchange
    }

    static func route(to queue: String) -> AMQPRoute {
        AMQPRoute(
            exchange: "", routingKey: queue, expiration: nil, isPersistent: false, isMandatory: true, replyTo: nil)
    }

    var route: AMQPRoute { Self.route(to: queue) }
    var received: [String] { state.withLock { $0.deliveries.map { String(decoding: $0.body, as: UTF8.self) } } }
    var exchanges: [String] { state.withLock { $0.deliveries.map(\.exchange) } }
    var redelivered: [String] {
        state.withLock { $0.deliveries.filter(\.isRedelivered).map { String(decoding: $0.body, as: UTF8.self) } }
    }
    var returned: [String] { state.withLock { $0.returned } }
    var connections: Int { state.withLock { $0.connections } }
    /// The number of bodies that the driver reported as written.
    var written: Int { state.withLock { $0.written } }
    var read: Int { state.withLock { $0.read } }

    var events: AMQPEvents {
        AMQPEvents(
            onConnected: { self.state.withLock { $0.connections += 1 } }, onDisconnected: {},
            onReturned: { _, body in
                self.state.withLock { $0.returned.append(String(decoding: body, as: UTF8.self)) }
            },
            onTraffic: { written, read in
                self.state.withLock {
                    $0.written += written
                    $0.read += read
                }
            })
    }

    /// Runs the body with a connected client, and shuts the client down.
    func serving(
        waitingBytesMax: Int = 16 << 20, drainLimit: Duration = .seconds(5), at server: AMQPConfiguration? = nil,
        _ body: (AMQPClient) async throws -> Void
    ) async throws {
        var configuration =
            server
            ?? AMQPConfiguration(host: "127.0.0.1", port: Self.port ?? 0, user: "guest", password: "guest")
        (configuration.waitingBytesMax, configuration.drainLimit) = (waitingBytesMax, drainLimit)
        let client = AMQPClient(
            configuration: configuration,
            topology: AMQPTopology(
                queues: [
                    AMQPQueue(name: queue, durable: true, exclusive: false, autoDelete: false, maxLength: nil)
                ],
                bindings: exchange.map { [AMQPBinding(queue: queue, exchange: $0, routingKey: queue)] } ?? []),
            consumptions: [AMQPConsumption(queue: queue, prefetch: 100) { self.took($0) }], events: events,
            logger: Logger(label: "test"))
        state.withLock { $0.client = client }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await client.run() }
            try await eventually("a connection", within: .seconds(10)) { client.isConnected }
            try await body(client)
            group.cancelAll()
        }
    }

    private func took(_ deliveries: [AMQPDelivery]) {
        let client = state.withLock { state in
            state.deliveries += deliveries
            return state.client
        }
        if let settlement { client?.acknowledge(deliveries, as: settlement) }
    }
}
