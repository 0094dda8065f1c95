import AMQP
import PostgreSQL
import ServiceKit

/// The notifier: wakes devices that are not connected when something is stored for them. Of several that run side by
/// side one looks at a time, and each sends what it has claimed.
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
