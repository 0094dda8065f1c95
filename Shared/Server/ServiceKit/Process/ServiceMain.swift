import CLinux
import CoreMetrics
import Foundation
import Glibc
package import Logging
import NIOCore
package import ServiceLifecycle
import UnixSignals

/// The common parts with which a process builds its services.
package struct ServiceContext: Sendable {
    /// The executable's name.
    package let name: String
    package let settings: Settings
    package let logger: Logger
    package let health: HealthState
    /// Sends this process's reports to consoles; nil: sends none.
    package var reporter: ProcessReporter?
    /// Traces pushes; nil: traces none.
    package var tracer: PushTracer?
}

/// Builds and runs a process: settings, logger, metrics, health, services in order, drain, exit code.
package enum ServiceMain {
    /// The version of the service.
    package static let version = "0.1.0"

    private enum ExitCode {
        static let usage: Int32 = 64
        static let dependency: Int32 = 69
        static let `internal`: Int32 = 70
        static let configuration: Int32 = 78
    }

    /// Runs the process and exits: 0 after a drain, 64 usage, 69 dependency, 70 internal, 78 configuration.
    ///
    /// - Parameters:
    ///   - keys: the process's own settings, without the common ones.
    ///   - problems: the process's own checks of its settings; each problem says how to correct it.
    ///   - build: makes the services in their start order. They stop in reverse order.
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
            // The last service gets the shutdown first, so readiness ends before any work stops.
            let services: [any Service] =
                [ForceExitOnSecondSignal(), server] + (tracer.map { [$0] } ?? []) + (try await build(context))
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
            // An error of the system, mostly an address in use, is not an internal one.
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

/// Sets readiness to false when the shutdown begins, before any other service stops.
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

/// Core dumps of this process.
package enum CoreDumps {
    /// Disables them, because memory contains passwords, keys and payloads (SEC16). Other processes of the same user
    /// cannot read this memory either.
    package static func switchOff() {
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        mss_set_dumpable(0)
    }

    /// Whether this process's flag allows core dumps.
    static var arePossible: Bool { mss_get_dumpable() != 0 }
}

/// Exits at once on the second SIGTERM or SIGINT. The first signal starts the graceful shutdown.
private struct ForceExitOnSecondSignal: Service {
    func run() async throws {
        var seen = 0
        for await signal in await UnixSignalsSequence(trapping: .sigterm, .sigint).cancelOnGracefulShutdown() {
            seen += 1
            // The exit code with which a shell reports a process that a signal ended.
            if seen == 2 { _exit(128 + signal.rawValue) }
        }
    }
}
