import AMQP
import PostgreSQL
import ServiceKit
import StoreService
import SyncStore

/// The oplog writer: executes the commands that read and change the database. Any number of oplog writers run side by
/// side.
@main
struct Main {
    static func main() async {
        await ServiceMain.run("mss-oplog-writer", settings: WriterSettings.keys) { context in
            let postgres = PostgresConfiguration(context.settings, applicationName: context.name)
            let stores = StoreLayout(context.settings)
            let writer = OplogWriterService(
                amqp: AMQPConfiguration(context.settings, connectionName: context.name), postgres: postgres,
                stores: stores,
                appendWorkers: context.settings[WriterSettings.appendWorkers],
                fetchWorkers: context.settings[WriterSettings.fetchWorkers],
                ring: context.settings[KeyRingSetting.masters],
                reporter: context.reporter, tracer: context.tracer, logger: context.logger)
            context.health.set("amqp", isReady: false)
            writer.onConnectionChange { context.health.set("amqp", isReady: $0) }
            return [
                WriterHeartbeat(
                    configuration: postgres, stores: stores, rollouts: writer.rollouts,
                    databaseTime: writer.databaseTime, health: context.health, logger: context.logger),
                WriterMaintenance(configuration: postgres, stores: stores, logger: context.logger), writer,
            ]
        }
    }
}
