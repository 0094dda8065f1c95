import ArgumentParser
import Foundation
import Logging
import PostgreSQL
import ServiceKit

/// What the tool reads from the environment that the processes share.
enum ToolSettings {
    /// What deploy/up leaves for the tool in the checkout's folder.
    private static let localFile = ".local/mssctl.json"

    static let amqpHint = """
        Reads MSS_AMQP_HOST, _PORT, _USER, _PASSWORD (or _PASSWORD_FILE), _VHOST, _TLS and its files, and \
        MSS_ENVIRONMENT; without them, the local stack of this folder.
        """

    /// Reads only the keys asked for: environment and file may hold settings of any process. What the environment
    /// does not say comes from the file that MSS_CONFIG_FILE names, or from the local stack's.
    ///
    /// - Parameter file: read alone, instead of all these.
    static func read(_ keys: [AnySettingKey], file: String? = nil) throws -> Settings {
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

    /// A connection to the database that they name; whoever opens it closes it.
    ///
    /// - Parameter file: read alone, instead of environment and files.
    static func database(file: String? = nil) throws -> PostgresConnection {
        PostgresConnection(
            configuration: PostgresConfiguration(tool: try read(PostgresSettings.keys, file: file)), logger: logger())
    }

    /// Whether they name a broker: then the tool works for a person, whose doings are recorded (spec C9); without one
    /// it can only call the API, as any backend.
    static func nameBroker() throws -> Bool { try texts().keys.contains { $0.hasPrefix("MSS_AMQP_") } }

    /// Whether they say where the database is.
    static func nameDatabase() throws -> Bool {
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
            // The local stack's may be missing, then there is none; one that was named may not.
            if named != nil || FileManager.default.fileExists(atPath: file) {
                environment.merge(try texts(in: file)) { own, _ in own }
            }
        }
        return environment
    }

    private static func texts(in file: String) throws -> [String: String] {
        let data = FileManager.default.contents(atPath: file)
        guard let texts = data.flatMap({ try? JSONDecoder().decode([String: String].self, from: $0) }) else {
            throw ValidationError("\(file) is not a readable JSON object of texts")
        }
        return texts
    }

    /// Logs to standard error, warnings and above: standard output is the command's own.
    static func logger() -> Logger {
        var logger = Logger(label: "mssctl") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .warning
        return logger
    }
}
