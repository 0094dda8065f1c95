/// Bodies that wait to be written, packed by route; pure.
///
/// Each body is an envelope with a list, and two concatenated bodies of one route are the envelope of both lists. So
/// all waiting bodies leave in as few messages as the size limit allows.
struct Outbox {
    /// Called once with the outcome of the body.
    typealias Confirmation = @Sendable (PublishOutcome) -> Void

    /// One message to write.
    struct Packed {
        let route: AMQPRoute
        var body: [UInt8]
        var confirmations: [Confirmation]
    }

    private var order: [AMQPRoute] = []
    private var waiting: [AMQPRoute: [Packed]] = [:]
    /// Bytes of the waiting bodies.
    private(set) var bytes = 0
    private let packedBodyBytes: Int

    init(packedBodyBytes: Int) { self.packedBodyBytes = packedBodyBytes }

    var isEmpty: Bool { order.isEmpty }

    /// Adds a body after the others of its route.
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

    /// Removes and returns everything; routes are in the order of their oldest body.
    mutating func removeAll() -> [Packed] {
        let all = order.flatMap { waiting[$0] ?? [] }
        self = Outbox(packedBodyBytes: packedBodyBytes)
        return all
    }
}
