import AMQP
import BusMessages
import Credentials
import ServiceKit
import SyncModel

/// The session validator: calls tenants to check user sessions. Any number of session validators run side by side.
@main
struct Main {
    static func main() async {
        await ServiceMain.run(
            "mss-session-validator", settings: ValidatorSettings.keys, problems: ValidatorSettings.problems
        ) { context in
            let settings = context.settings
            let queue = WorkQueue<AMQPDelivery>()
            let commands = AMQPConsumption(
                queue: CommandQueue.validate.rawValue, prefetch: SessionCheckConsumer.prefetch
            ) { queue.add(contentsOf: $0) }
            let keys = OpenedKeys(ring: settings[KeyRingSetting.sealing(for: .callout)])
            let control = ControlConnection(context, keysFor: .callout, consumptions: [commands]) { keys.forgetAll() }
            let consumer = SessionCheckConsumer(
                queue: queue, control: control, endpoint: try SessionEndpoint(settings), keys: keys,
                tenantConcurrency: settings[ValidatorSettings.tenantConcurrency], logger: context.logger)
            return [consumer, control.directory]
        }
    }
}
