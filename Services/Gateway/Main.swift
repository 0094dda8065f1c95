import AMQP
import BusMessages
import ServiceKit
import SyncModel

/// The gateway process, which holds device connections. Any number of gateways run side by side.
@main
struct Main {
    static func main() async {
        await ServiceMain.run(
            "mss-gateway", settings: GatewaySettings.keys + AdmissionSettings.keys, problems: GatewaySettings.problems
        ) { context in
            context.health.set("listener", isReady: false)
            let (settings, gatewayID) = (context.settings, context.settings[GatewaySettings.id])
            let link = GatewayReference()
            let notices = AMQPConsumption(queue: Topology.noticesQueue(gatewayID: gatewayID), prefetch: nil) {
                link.runtime?.received($0)
            }
            let control = ControlConnection(
                context, keysFor: .device, extra: .notices(gatewayID: gatewayID), consumptions: [notices],
                answers: [.verdicts, .relayed]
            ) { link.runtime?.contextChanged() }
            let runtime = GatewayRuntime(
                context, limits: GatewaySettings.limits(settings), admission: AdmissionSettings.limits(settings),
                control: control)
            link.set(runtime)
            control.bus.onConnectionChange { isConnected in
                if isConnected { runtime.registerAll() }
            }
            let listener = try DeviceListener(context, runtime: runtime)
            return [
                control.bus, control.directory, runtime.makeLease(), runtime.reporter,
                runtime.makeThrottle(sessionsPerSecond: settings[GatewaySettings.globalPace]),
                GatewayTicker(runtime: runtime, devices: context.reporter?.devices), listener.certificates, listener,
            ]
        }
    }
}
