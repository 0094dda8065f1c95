import AMQP
import PostgreSQL
import ServiceKit
import StoreService

/// The notifier: wakes devices that are not connected when something is stored for them. Several notifiers can run side
/// by side: one at a time claims devices, and each wakes the devices that it has claimed.
@main
struct Main {
    static func main() async {
        await ServiceMain.run(
            "mss-notifier", settings: NotifierSettings.keys, problems: NotifierSettings.problems
        ) { context in
            [
                WakeUpService(
                    amqp: AMQPConfiguration(context.settings, connectionName: context.name),
                    postgres: PostgresConfiguration(context.settings, applicationName: context.name),
                    providers: try PushProviders(context.settings),
                    interval: context.settings[NotifierSettings.interval], health: context.health,
                    reporter: context.reporter, logger: context.logger)
            ]
        }
    }
}
