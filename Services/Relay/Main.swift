import AMQP
import PostgreSQL
import ServiceKit

/// The relay: takes operations of devices, has tenants do them, and tells devices what became of them. Any number of
/// them run side by side.
@main
struct Main {
    static func main() async {
        await ServiceMain.run("mss-relay", settings: RelaySettings.keys, problems: RelaySettings.problems) { context in
            let relay = try RelayService(context)
            return [relay, relay.directory]
        }
    }
}
