import BusMessages
import PostgreSQL
import ServerTLS
import ServiceKit
import ServiceLifecycle
import StoreService

/// The console: pages and a JSON API for operators. Any number of processes run in parallel.
@main
struct Main {
    static func main() async {
        await ServiceMain.run(
            "mss-console", settings: ConsoleSettings.keys, problems: ConsoleSettings.problems
        ) { context in
            let settings = context.settings
            let board = ProcessReportBoard()
            let control = ControlConnection(
                context, keysFor: nil, extra: board.topology, consumptions: [board.consumption],
                answers: [.verdicts, .relayed])
            let database = Database(
                configuration: PostgresConfiguration(settings, applicationName: context.name), health: context.health,
                logger: context.logger)
            let certificates = try ConsoleSettings.files(settings).map { files in
                try ServerCertificates(
                    files, applicationProtocols: ["http/1.1"], logger: context.logger)
            }
            let responder = ConsoleResponder(
                routes: Routes.all(context, control, database, board), sessions: Sessions(database: database),
                renderer: PageRenderer(directory: control.directory), health: context.health,
                isTLS: certificates != nil || settings[ConsoleSettings.tlsInFront] == "on",
                rules: ConsoleSettings.entry(settings), logger: context.logger)
            let server = ConsoleServer(
                host: settings[ConsoleSettings.host], port: settings[ConsoleSettings.port], responder: responder,
                certificates: certificates, limits: ConsoleSettings.limits(settings))
            let reloaders: [any Service] = certificates.map { [$0] } ?? []
            return [control.bus, control.directory, database] + reloaders + [server]
        }
    }
}
