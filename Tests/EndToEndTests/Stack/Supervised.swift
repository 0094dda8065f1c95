import ChildProcesses
import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

/// A process of the stack under test. It is restarted when it dies, as a container platform would do, until it is
/// stopped.
final class Supervised: Sendable {
    private struct State {
        var process: ChildProcess?
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
    var processIdentifier: Int32 { state.withLock { $0.process?.identifier ?? 0 } }

    /// - Throws: when the executable cannot be started.
    func start() throws {
        try host?.open(ports)
        try state.withLock { state in
            state.isStopped = false
            try spawn(&state)
        }
    }

    /// Kills the process with SIGKILL; it is started again.
    func kill() { signal(SIGKILL) }

    /// Sends a signal to the process; SIGSTOP pauses it and SIGCONT resumes it.
    func signal(_ number: Int32) {
        state.withLock { $0.process }?.signal(number)
    }

    /// Ends the process until the next `start()`.
    ///
    /// - Parameter signal: the signal that ends it.
    func stop(by signal: Int32 = SIGTERM) {
        let process = state.withLock { state in
            state.isStopped = true
            return state.process
        }
        process?.signal(signal)
        process?.waitUntilExit()
    }

    private func spawn(_ state: inout State) throws {
        let command = host?.command(executable, arguments) ?? (executable: executable, arguments: arguments)
        let process = try ChildProcess(
            [command.executable.path] + command.arguments, environment: environment, output: .endOf(log))
        state.process = process
        state.starts += 1
        process.onExit { [self] in restart(after: process) }
    }

    private func restart(after process: ChildProcess) {
        state.withLock { state in
            guard !state.isStopped, state.process === process else { return }
            do {
                try spawn(&state)
            } catch {
                Issue.record(error, "\(name) is not started again")
            }
        }
    }
}
