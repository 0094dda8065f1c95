import AMQP
import PostgreSQL
import ServiceKit

/// The relay: stores operations of devices, calls tenants to execute them, and pushes the results to devices. Any
/// number of relays run side by side.
@main
struct Main {
    static func main() async {
        await ServiceMain.run("mss-relay", settings: RelaySettings.keys, problems: RelaySettings.problems) { context in
            let relay = try RelayService(context)
            return [relay, relay.directory]
        }
    }
}
