import Metrics
import ServiceKit
import ServiceLifecycle
import SyncModel

/// What the gateway does again and again: the second's tick of every session, the minute's count, and the sweep.
struct GatewayRhythm: Service {
    /// Seconds between two sweeps.
    private static let sweepEvery = 5

    let core: GatewayCore
    /// What consoles hear of the connections; nil: nothing.
    let devices: ConnectedDevices?

    func run() async throws {
        let connected = Gauge(label: "mss_gateway_connections")
        var minutes = ConnectedMinutes(gatewayID: core.gatewayID)
        var second = Int.random(in: 0..<Self.sweepEvery)
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: .seconds(1)) }
            core.tell(core.registry.all, .ticked)
            connected.record(core.registry.count)
            devices?.note(core.sessionsByInstance().filter { $0.value > 0 })
            core.reporter.note(minutes.facts(at: .now) { core.sessionsByInstance() })
            core.giveAway()
            second += 1
            if second % Self.sweepEvery == 0 { await core.sweep() }
        }
    }
}
