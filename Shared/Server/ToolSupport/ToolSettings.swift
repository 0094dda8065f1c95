import ArgumentParser
import Foundation
package import Logging
package import PostgreSQL
package import ServiceKit
import StoreService

/// The settings of the tool, from the environment or a file.
package enum ToolSettings {
    /// The settings that deploy/up writes for the tool.
    private static let localFile = ".local/mssctl.json"

    package static let amqpHint = """
        Reads MSS_AMQP_HOST, _PORT, _USER, _PASSWORD (or _PASSWORD_FILE), _VHOST, _TLS and its files, and \
        MSS_ENVIRONMENT; without them, the settings of the local stack.
        """

    /// Reads only the requested keys, because environment and file can contain settings of other processes. The file of
    /// MSS_CONFIG_FILE or of the local stack supplies values that the environment lacks.
    ///
    /// - Parameter file: the only source, instead of environment and files.
    package static func read(_ keys: [AnySettingKey], file: String? = nil) throws -> Settings {
        let environment = try file.map { try texts(in: $0) } ?? texts()
        let keys = keys + [ProcessSettings.environment.erased]
        let names = Set(keys.map(\.name))
        let settings = try Settings(
            keys,
            environment: environment.filter { name, _ in
                names.contains(name) || (name.hasSuffix("_FILE") && names.contains(String(name.dropLast(5))))
            })
        try StartRules.check(settings)
        return settings
    }

    /// A connection to the configured database. The caller must close it.
    ///
    /// - Parameter file: the only source, instead of environment and files.
    package static func database(file: String? = nil) throws -> PostgresConnection {
        PostgresConnection(configuration: try databaseConfiguration(file: file), logger: logger())
    }

    /// The configured database, with longer time limits for migrations.
    ///
    /// - Parameter file: the only source, instead of environment and files.
    package static func databaseConfiguration(file: String? = nil) throws -> PostgresConfiguration {
        var configuration = PostgresConfiguration(
            try read(PostgresSettings.keys, file: file), applicationName: "mssctl")
        (configuration.statementTimeout, configuration.lockTimeout) = (.seconds(60), .seconds(30))
        return configuration
    }

    /// Whether a broker is configured. Then operators' actions are recorded (C9). Without a broker the tool can only
    /// call the API like a backend.
    package static func nameBroker() throws -> Bool { try texts().keys.contains { $0.hasPrefix("MSS_AMQP_") } }

    /// Whether a database is configured.
    package static func nameDatabase() throws -> Bool {
        let names = try texts().keys
        return names.contains("MSS_POSTGRES_HOST") || names.contains("MSS_POSTGRES_PORT")
    }

    private static func texts() throws -> [String: String] {
        var environment = ProcessInfo.processInfo.environment
        let named = environment["MSS_CONFIG_FILE"]
        let isAddressed = environment.keys.contains { name in
            ["MSS_AMQP_", "MSS_POSTGRES_", "MSS_MASTER_KEYS"].contains(where: name.hasPrefix)
        }
        if let file = named ?? (isAddressed ? nil : localFile) {
            // The file of the local stack can be missing. A file of MSS_CONFIG_FILE must exist.
            if named != nil || FileManager.default.fileExists(atPath: file) {
                environment.merge(try texts(in: file)) { own, _ in own }
            }
        }
        return environment
    }

    private static func texts(in file: String) throws -> [String: String] {
        let data = FileManager.default.contents(atPath: file)
        guard let texts = data.flatMap({ try? JSONDecoder().decode([String: String].self, from: $0) }) else {
            throw ValidationError("cannot read \(file) as a JSON object of texts")
        }
        return texts
    }

    /// Logs warnings and errors to standard error. Standard output belongs to the command.
    package static func logger() -> Logger {
        var logger = Logger(label: "mssctl") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .warning
        return logger
    }
}
