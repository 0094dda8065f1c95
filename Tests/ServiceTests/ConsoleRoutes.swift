import AMQP
import Foundation
import Logging
import PostgreSQL

@testable import Console
@testable import ServiceKit

/// The console's routes, for tests that look at them and call none.
enum ConsoleRoutes {
    static let all: [Route] = {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let environment = [
            "MSS_POSTGRES_USER": "console", "MSS_AMQP_USER": "console", "MSS_HEALTH_PORT": "1",
        ]
        guard let settings = try? Settings(ConsoleSettings.keys + ProcessSettings.keys, environment: environment) else {
            return []
        }
        let context = ServiceContext(
            name: "mss-console", settings: settings, logger: logger, health: HealthState())
        let control = ControlConnection(context, keysFor: nil)
        let database = Database(
            configuration: PostgresConfiguration(settings, applicationName: "test"), health: context.health,
            logger: logger)
        return Routes.all(context, control, database, ProcessReportBoard())
    }()
}
