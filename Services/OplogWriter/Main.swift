import AMQP
import PostgreSQL
import ServiceKit
import SyncStore

/// The oplog writer: the store's process. Any number of them run side by side.
@main
struct Main {
    static func main() async {
        await ServiceMain.run("mss-oplog-writer", settings: WriterSettings.keys) { context in
            let postgres = PostgresConfiguration(context.settings, applicationName: context.name)
            let writer = OplogWriterService(
                amqp: AMQPConfiguration(context.settings, connectionName: context.name), postgres: postgres,
                appendLanes: context.settings[WriterSettings.appendLanes],
                fetchLanes: context.settings[WriterSettings.fetchLanes], ring: context.settings[KeyRingSetting.masters],
                reporter: context.reporter, tracer: context.tracer, logger: context.logger)
            context.health.set("amqp", isReady: false)
            writer.onConnectionChange { context.health.set("amqp", isReady: $0) }
            return [
                DatabaseWatch(
                    configuration: postgres, rollouts: writer.rollouts, databaseTime: writer.databaseTime,
                    health: context.health, logger: context.logger),
                PartitionKeeper(configuration: postgres, logger: context.logger), writer,
            ]
        }
    }
}
