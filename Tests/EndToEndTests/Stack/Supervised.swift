import Foundation
import Glibc
import Synchronization
import TestSupport

/// A process of the stack under test. It is restarted when it dies, as a container platform would do, until it is
/// stopped.
final class Supervised: Sendable {
    private struct State {
        var process: Process?
        var isStopped = false
        var starts = 0
    }

    let name: String
    private let executable: URL
    private let arguments: [String]
    private let environment: [String: String]
    private let log: URL
    /// The host of the process; nil: this machine.
    private let host: TestHost?
    private let ports: [String]
    private let state = Mutex(State())

    /// The settings that name a listening port.
    private static let portSettings = [
        "MSS_HEALTH_PORT", "MSS_INGEST_PORT", "MSS_GATEWAY_PORT", "MSS_CONSOLE_PORT",
    ]

    /// - Parameters:
    ///   - host: the host of the process; nil: this machine.
    ///   - ports: listening ports that no setting names.
    init(
        name: String, executable: URL, arguments: [String] = [], environment: [String: String], log: URL,
        host: TestHost? = nil, ports: [Int] = []
    ) {
        self.name = name
        self.executable = executable
        self.arguments = arguments
        self.environment = environment
        self.log = log
        self.host = host
        self.ports = ports.map { "\($0)" } + Self.portSettings.compactMap { environment[$0] }
    }

    /// Returns another process of the same executable, with other settings.
    func sibling(_ name: String, _ settings: [String: String]) -> Supervised {
        Supervised(
            name: name, executable: executable, arguments: arguments,
            environment: environment.merging(settings) { $1 },
            log: log.deletingLastPathComponent().appending(path: "\(name).log"), host: host)
    }

    /// The log so far.
    var logged: String { (try? String(contentsOf: log, encoding: .utf8)) ?? "" }

    /// The number of starts.
    var starts: Int { state.withLock { $0.starts } }

    /// The id of the running process; 0 before the first start.
    var processIdentifier: Int32 { state.withLock { $0.process?.processIdentifier ?? 0 } }

    /// - Throws: when the executable cannot be started.
    func start() throws {
        state.withLock { $0.isStopped = false }
        if !FileManager.default.fileExists(atPath: log.path) {
            _ = FileManager.default.createFile(atPath: log.path, contents: nil)
        }
        try host?.open(ports)
        try spawn()
    }

    /// Kills the process with SIGKILL; it is started again.
    func kill() { signal(SIGKILL) }

    /// Sends a signal to the process; SIGSTOP pauses it and SIGCONT resumes it.
    func signal(_ number: Int32) {
        let identifier = state.withLock { $0.process?.processIdentifier }
        if let identifier { Glibc.kill(identifier, number) }
    }

    /// Ends the process until the next `start()`.
    ///
    /// - Parameter signal: the signal that ends it.
    func stop(by signal: Int32 = SIGTERM) {
        let process = state.withLock { state in
            state.isStopped = true
            return state.process
        }
        self.signal(signal)
        process?.waitUntilExit()
    }

    private func spawn() throws {
        let process = Process()
        let command = host?.command(executable, arguments) ?? (executable: executable, arguments: arguments)
        process.executableURL = command.executable
        process.arguments = command.arguments
        process.environment = environment
        let output = try FileHandle(forWritingTo: log)
        try output.seekToEnd()
        process.standardOutput = output
        process.standardError = output
        process.standardInput = FileHandle.nullDevice
        process.terminationHandler = { [self] _ in
            if state.withLock({ !$0.isStopped }) { try? spawn() }
        }
        try process.runWithOpenSignals()
        state.withLock { state in
            state.process = process
            state.starts += 1
        }
    }
}
