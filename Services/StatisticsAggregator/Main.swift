import AMQP
import PostgreSQL
import ServiceKit
import StoreService

/// The statistics aggregator: folds stored pushes and facts into figures. Any number of aggregators run side by side.
@main
struct Main {
    static func main() async {
        await ServiceMain.run("mss-statistics", settings: PostgresSettings.keys) { context in
            [
                FactConsumer(
                    amqp: AMQPConfiguration(context.settings, connectionName: context.name),
                    postgres: PostgresConfiguration(context.settings, applicationName: context.name),
                    health: context.health, reporter: context.reporter, logger: context.logger)
            ]
        }
    }
}
