import AMQP
import Foundation
import Logging
import PostgreSQL
import StoreService

@testable import Console
@testable import ServiceKit

/// The console's routes, for tests that inspect them without calls, and a responder for tests that call routes.
enum ConsoleRoutes {
    static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    static let all: [Route] = {
        guard let context, let database else { return [] }
        let control = ControlConnection(context, keysFor: nil)
        return Routes.all(context, control, database, ProcessReportBoard())
    }()

    static let context: ServiceContext? = {
        let environment = [
            "MSS_POSTGRES_USER": "console", "MSS_AMQP_USER": "console", "MSS_HEALTH_PORT": "1",
        ]
        let settings = try? Settings(ConsoleSettings.keys + ProcessSettings.keys, environment: environment)
        return settings.map { ServiceContext(name: "mss-console", settings: $0, logger: logger, health: HealthState()) }
    }()

    /// A database address without a server.
    static let database: Database? = context.map {
        Database(
            configuration: PostgresConfiguration($0.settings, applicationName: "test"), health: $0.health,
            logger: logger)
    }

    /// A responder with routes of the test. No person can sign in.
    static func responder(
        _ routes: [Route], logger: Logger = logger, rules: EntryRules = EntryRules()
    ) throws -> ConsoleResponder {
        guard let context, let database else { throw NoSettings() }
        return ConsoleResponder(
            routes: routes, sessions: Sessions(database: database),
            renderer: PageRenderer(directory: ControlConnection(context, keysFor: nil).directory),
            health: context.health, isTLS: false, rules: rules, logger: logger)
    }

    private struct NoSettings: Error {}
}
