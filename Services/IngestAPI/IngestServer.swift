import Hummingbird
import HummingbirdCore
import Logging
import ServiceLifecycle

/// The HTTP server of the ingest API.
struct IngestServer: Service {
    let host: String
    let port: Int
    let routes: PushRoutes
    let logger: Logger

    func run() async throws {
        var quiet = logger
        quiet.logLevel = .error
        let routes = routes
        let application = Application(
            responder: CallbackResponder { (request: Request, _: BasicRequestContext) in
                await routes.respond(to: request)
            },
            server: .http1(configuration: .init(idleTimeout: .seconds(60))),
            configuration: .init(address: .hostname(host, port: port), serverName: nil), logger: quiet)
        try await application.run()
    }
}
