import CoreMetrics
import Foundation
package import Logging
import NIOCore
package import ServiceLifecycle
import UnixSignals

/// What a process has when it builds its services.
package struct ServiceContext: Sendable {
    /// The executable's name.
    package let name: String
    package let settings: Settings
    package let logger: Logger
    package let health: HealthState
    /// What consoles hear of this process; nil: nothing.
    package var reporter: ProcessReporter?
    /// Of pushes; nil: none is traced.
    package var tracer: PushTracer?
}

/// The frame of every process: settings, logger, metrics, health, services in order, drain, exit code.
package enum ServiceMain {
    /// The version that every process shows.
    package static let version = "0.1.0"

    private enum ExitCode {
        static let usage: Int32 = 64
        static let dependency: Int32 = 69
        static let `internal`: Int32 = 70
        static let configuration: Int32 = 78
    }

    /// Runs the process to its end and exits: 0 after a drain, 64 usage, 69 dependency, 70 internal, 78 configuration.
    ///
    /// - Parameters:
    ///   - keys: the process's own settings; the common ones are added.
    ///   - problems: what the process itself finds wrong in its settings, each with what to do.
    ///   - build: makes the services, in the order in which they start; they stop in the reverse order.
    package static func run(
        _ name: String, settings keys: [AnySettingKey], problems: (Settings) -> [String] = { _ in [] },
        build: (ServiceContext) async throws -> [any Service]
    ) async -> Never {
        // Before a secret is in memory.
        CoreDumps.switchOff()
        OpenFiles.raiseLimit()
        let settings = read(name, keys + ProcessSettings.keys, problems)
        let registry = MetricsRegistry(service: name, version: version)
        MetricsSystem.bootstrap(registry)
        let format = settings[ProcessSettings.logFormat]
        let isJSON = format == "json" || (format == "auto" && isatty(STDERR_FILENO) == 0)
        var logger = Logger(label: name) { _ in LineLogHandler(service: name, isJSON: isJSON) }
        logger.logLevel = Logger.Level(rawValue: settings[ProcessSettings.logLevel]) ?? .info
        let health = HealthState()
        let endpoint = settings[ProcessSettings.traceEndpoint]
        let tracer =
            endpoint.isEmpty
            ? nil
            : PushTracer(
                endpoint: endpoint, oneIn: settings[ProcessSettings.traceOneIn], service: name, version: version,
                logger: logger)
        let context = ServiceContext(
            name: name, settings: settings, logger: logger, health: health,
            reporter: ProcessReporter(service: name, version: version, health: health, metrics: registry),
            tracer: tracer)
        do {
            let server = HealthServer(
                host: settings[ProcessSettings.healthHost], port: settings[ProcessSettings.healthPort],
                health: health, metrics: registry, logger: logger)
            // A shutdown reaches the last service first, so readiness goes before any work stops.
            let services: [any Service] =
                [SecondSignalExit(), server] + (tracer.map { [$0] } ?? []) + (try await build(context))
                + [DrainWatch(health: health)]
            var configuration = ServiceGroupConfiguration(
                services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
            configuration.maximumGracefulShutdownDuration = .seconds(10)
            logger.info("starting", metadata: ["version": "\(version)", "openFiles": "\(OpenFiles.limit)"])
            try await ServiceGroup(configuration: configuration).run()
            logger.info("stopped")
            exit(0)
        } catch {
            logger.critical("stopped by an error", metadata: ["error": "\(error)"])
            // What the system refused, mostly an address that is taken, is no fault of ours.
            exit(error is IOError ? ExitCode.dependency : ExitCode.internal)
        }
    }

    private static func read(
        _ name: String, _ keys: [AnySettingKey], _ problems: (Settings) -> [String]
    ) -> Settings {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments {
        case ["--version"]: finish("\(name) \(version)", 0)
        case ["--help"]:
            let list = keys.map { "  \($0.help)" }.joined(separator: "\n")
            finish("usage: \(name) [config check | config print | --version | --help]\nsettings:\n\(list)", 0)
        case [], ["config", "check"], ["config", "print"]: break
        default: finish("\(name): unknown arguments; see \(name) --help", ExitCode.usage, toError: true)
        }
        do throws(Settings.Problems) {
            let settings = try Settings(keys, environment: ProcessInfo.processInfo.environment)
            try StartRules.check(settings, own: problems(settings))
            if arguments == ["config", "check"] { finish("the configuration is complete", 0) }
            if arguments == ["config", "print"] { finish(settings.listing, 0) }
            return settings
        } catch {
            finish("\(name): the configuration is not usable:\n\(error)", ExitCode.configuration, toError: true)
        }
    }

    private static func finish(_ text: String, _ code: Int32, toError: Bool = false) -> Never {
        (toError ? FileHandle.standardError : .standardOutput).write(Data((text + "\n").utf8))
        exit(code)
    }
}

/// Turns readiness off when the shutdown begins, before any other service ends.
private struct DrainWatch: Service {
    let health: HealthState

    func run() async throws {
        await withGracefulShutdownHandler {
            try? await gracefulShutdown()
        } onGracefulShutdown: {
            health.drain()
        }
    }
}
