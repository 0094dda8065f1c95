import Foundation
import Logging
import ServiceKit

/// What the tool reads from the environment that the processes share.
enum ToolSettings {
    /// Reads only the keys asked for: the environment may hold settings of any process.
    static func read(_ keys: [AnySettingKey]) throws -> Settings {
        let environment = ProcessInfo.processInfo.environment
        let names = Set(keys.map(\.name))
        return try Settings(
            keys,
            environment: environment.filter { name, _ in
                names.contains(name) || (name.hasSuffix("_FILE") && names.contains(String(name.dropLast(5))))
            })
    }

    /// Logs to standard error, warnings and above: standard output is the command's own.
    static func logger() -> Logger {
        var logger = Logger(label: "mssctl") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .warning
        return logger
    }
}
