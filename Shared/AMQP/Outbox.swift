/// Bodies that wait to be written, packed by route; pure.
///
/// Bodies are lists by contract, and two bodies of one route written one after the other are the body of both lists.
/// So whatever waits when the connection writes leaves in as few messages as its size allows.
struct Outbox {
    /// Called once with what became of the body.
    typealias Confirmation = @Sendable (PublishOutcome) -> Void

    /// One message to write.
    struct Packed {
        let route: AMQPRoute
        var body: [UInt8]
        var confirmations: [Confirmation]
    }

    private var order: [AMQPRoute] = []
    private var waiting: [AMQPRoute: [Packed]] = [:]
    /// Bytes that wait.
    private(set) var bytes = 0
    private let packedBodyBytes: Int

    init(packedBodyBytes: Int) { self.packedBodyBytes = packedBodyBytes }

    var isEmpty: Bool { order.isEmpty }

    /// Adds a body behind those of its route.
    mutating func add(_ body: [UInt8], on route: AMQPRoute, _ confirmation: Confirmation?) {
        bytes += body.count
        let confirmations = confirmation.map { [$0] } ?? []
        guard let last = waiting[route]?.indices.last else {
            order.append(route)
            waiting[route] = [Packed(route: route, body: body, confirmations: confirmations)]
            return
        }
        if let size = waiting[route]?[last].body.count, size + body.count <= packedBodyBytes {
            waiting[route]?[last].body += body
            waiting[route]?[last].confirmations += confirmations
        } else {
            waiting[route]?.append(Packed(route: route, body: body, confirmations: confirmations))
        }
    }

    /// Takes everything, routes in the order in which they began to wait.
    mutating func takeAll() -> [Packed] {
        let all = order.flatMap { waiting[$0] ?? [] }
        self = Outbox(packedBodyBytes: packedBodyBytes)
        return all
    }
}
