import AMQP
import BusMessages
import ServiceKit
import SyncModel

/// The gateway: holds device connections. Any number of them run side by side.
@main
struct Main {
    static func main() async {
        await ServiceMain.run(
            "mss-gateway", settings: GatewaySettings.keys + AdmissionSettings.keys, problems: GatewaySettings.problems
        ) { context in
            context.health.set("listener", isReady: false)
            let (settings, gatewayID) = (context.settings, context.settings[GatewaySettings.id])
            let link = CoreLink()
            let notices = AMQPConsumption(queue: Topology.noticesQueue(gatewayID: gatewayID), prefetch: nil) {
                link.core?.received($0)
            }
            let control = ControlConnection(
                context, keysFor: .device, extra: .notices(gatewayID: gatewayID), consumptions: [notices],
                answers: [.verdicts, .relayed]
            ) { link.core?.surroundingsChanged() }
            let core = GatewayCore(
                context, limits: GatewaySettings.limits(settings), admission: AdmissionSettings.limits(settings),
                control: control)
            link.set(core)
            control.bus.onConnectionChange { isConnected in
                if isConnected { core.announceAll() }
            }
            let listener = try DeviceListener(context, core: core)
            return [
                control.bus, control.directory, core.makeLease(), core.reporter,
                core.makePacer(sessionsPerSecond: settings[GatewaySettings.globalPace]),
                GatewayRhythm(core: core, devices: context.reporter?.devices), listener.certificates, listener,
            ]
        }
    }
}
