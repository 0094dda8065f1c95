import Testing

@testable import AMQP

@Suite("Outbox: bodies that wait are packed by route") struct OutboxTests {
    private let first = Self.route("first")
    private let second = Self.route("second")

    private static func route(_ key: String) -> AMQPRoute {
        AMQPRoute(
            exchange: "", routingKey: key, expiration: nil, isPersistent: false, isMandatory: false, replyTo: nil)
    }

    @Test("bodies of one route leave as one, in order; routes leave in the order in which they began to wait")
    func packs() {
        var outbox = Outbox(packedBodyBytes: 10)
        outbox.add([1, 2], on: second, nil)
        outbox.add([3], on: first, nil)
        outbox.add([4], on: second, nil)
        #expect(outbox.bytes == 4)
        let packed = outbox.removeAll()
        #expect(packed.map(\.route) == [second, first])
        #expect(packed.map(\.body) == [[1, 2, 4], [3]])
        #expect(outbox.isEmpty && outbox.bytes == 0)
    }

    @Test("a body is never packed beyond the limit, and a body beyond it leaves alone")
    func limit() {
        var outbox = Outbox(packedBodyBytes: 4)
        for size in [3, 1, 1, 9, 1, 4] { outbox.add([UInt8](repeating: 0, count: size), on: first, nil) }
        #expect(outbox.removeAll().map(\.body.count) == [4, 1, 9, 1, 4])
    }

    @Test("every confirmation stays with the body that carries its bytes")
    func confirmations() {
        var outbox = Outbox(packedBodyBytes: 2)
        for _ in 0..<3 { outbox.add([0], on: first) { _ in } }
        outbox.add([0], on: first, nil)
        #expect(outbox.removeAll().map(\.confirmations.count) == [2, 1])
    }
}
