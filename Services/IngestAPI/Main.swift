import ServiceKit

/// The ingest API: takes pushes of backends over HTTP. Any number of them run side by side.
@main
struct Main {
    static func main() async {
        await ServiceMain.run("mss-ingest", settings: IngestSettings.keys) { context in
            let health = context.health
            health.set("amqp", isReady: false)
            health.set("control", isReady: false)
            let control = ControlConnection(context)
            control.bus.onConnectionChange { health.set("amqp", isReady: $0) }
            let submitter = PushSubmitter(
                bus: control.bus, directory: control.directory,
                inFlightMax: context.settings[IngestSettings.inFlightMax])
            let server = IngestServer(
                host: context.settings[IngestSettings.host], port: context.settings[IngestSettings.port],
                routes: PushRoutes(logger: context.logger) { await submitter.submit($0, scope: $1) },
                logger: context.logger)
            return [control.bus, control.directory, server]
        }
    }
}
