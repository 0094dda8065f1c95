import Synchronization

/// Gives the bus's handlers access to the runtime, which needs the bus first. Empty only during start-up.
final class GatewayReference: Sendable {
    private let value = Mutex<GatewayRuntime?>(nil)
    var runtime: GatewayRuntime? { value.withLock { $0 } }
    func set(_ runtime: GatewayRuntime) { value.withLock { $0 = runtime } }
}
