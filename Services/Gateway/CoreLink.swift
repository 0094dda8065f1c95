import Synchronization

/// Gives the bus's handlers the core, which is built on the bus. Empty only until the process has been put together.
final class CoreLink: Sendable {
    private let value = Mutex<GatewayCore?>(nil)
    var core: GatewayCore? { value.withLock { $0 } }
    func set(_ core: GatewayCore) { value.withLock { $0 = core } }
}
