/// One step of a scenario: what is done, and measured, before the next begins. It ends when everything that it sent was
/// answered and, while every device is connected, delivered and acknowledged.
struct LoadStep: Hashable, Sendable {
    /// One thing that happens in a step.
    enum Part: Hashable, Sendable {
        /// Every device connects, so many at a time, and catches up.
        case connect(concurrency: Int)
        /// Every device's connection ends.
        case disconnect
        /// Nothing but the heartbeats of the devices.
        case idle(seconds: Int)
        case push(PushStream)
        /// Devices end their connection, so many in a second, and connect again at once.
        case reconnect(perSecond: Int, seconds: Int)
        case operate(OperationStream)
    }

    var name: String
    /// What happens at the same time; more than one only of pushes, operations and reconnecting.
    var parts: [Part]

    /// The operations among the parts; only one stream of them goes at a time.
    var operations: OperationStream? {
        parts.lazy.compactMap { if case .operate(let stream) = $0 { stream } else { nil } }.first
    }

    /// The pushes among the parts.
    var streams: [PushStream] { parts.compactMap { if case .push(let stream) = $0 { stream } else { nil } } }
}
