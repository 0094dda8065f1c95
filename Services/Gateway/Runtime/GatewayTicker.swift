import Metrics
import ServiceKit
import ServiceLifecycle
import SyncModel

/// The periodic work of the gateway: the deadlines of all sessions each second, the connected devices each minute, and
/// the sweep.
struct GatewayTicker: Service {
    /// Seconds between two sweeps.
    private static let sweepEvery = 5

    let runtime: GatewayRuntime
    /// Receives the connected devices, for consoles; nil: not reported.
    let devices: ConnectedDevices?

    func run() async throws {
        let connected = Gauge(label: "mss_gateway_connections")
        var minutes = ConnectedMinutes(gatewayID: runtime.gatewayID)
        var second = Int.random(in: 0..<Self.sweepEvery)
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: .seconds(1)) }
            runtime.tick()
            connected.record(runtime.registry.count)
            devices?.record(runtime.sessionsByInstance().filter { $0.value > 0 })
            runtime.reporter.enqueue(minutes.facts(at: .now) { runtime.sessionsByInstance() })
            runtime.closeSurplus()
            second += 1
            if second % Self.sweepEvery == 0 { await runtime.sweep() }
        }
    }
}
