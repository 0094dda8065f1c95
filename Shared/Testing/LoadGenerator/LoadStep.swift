/// One measured step of a scenario. It ends when every call is answered and, if every device is connected, every push
/// is delivered and acknowledged.
struct LoadStep: Hashable, Sendable {
    /// One activity of a step.
    enum Part: Hashable, Sendable {
        /// Every device connects and catches up, this many at a time.
        case connect(concurrency: Int)
        /// Every device disconnects.
        case disconnect
        /// Only the heartbeats of the devices.
        case idle(seconds: Int)
        case push(PushStream)
        /// Devices disconnect at this rate and reconnect at once.
        case reconnect(perSecond: Int, seconds: Int)
        case operate(OperationStream)
    }

    var name: String
    /// Concurrent activities. Only pushes, operations and reconnects can be combined.
    var parts: [Part]

    /// The stream of operations among the parts. At most one runs at a time.
    var operations: OperationStream? {
        parts.lazy.compactMap { if case .operate(let stream) = $0 { stream } else { nil } }.first
    }

    /// Whether devices disconnect and connect again in the step.
    var reconnects: Bool { parts.contains { if case .reconnect = $0 { true } else { false } } }
    /// The streams of pushes among the parts.
    var streams: [PushStream] { parts.compactMap { if case .push(let stream) = $0 { stream } else { nil } } }
}
