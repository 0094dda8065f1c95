import ChildProcesses
import Foundation
import Glibc
import MobileSync
import Synchronization

/// An app with the Java client, as a process of the program `TortureDriver` (`Tests/JavaTests`). At its end the process
/// is killed.
final class TortureJavaApp: TortureApp {
    /// Time limit for the process to store an operation, including its own start on a busy machine.
    private static let submitLimit = Duration.seconds(60)
    private static let pollInterval = Duration.milliseconds(20)
    /// The virtual machine's own messages go to standard error.
    private static let machineOptions = [
        "-Xmx64m", "-XX:+DisplayVMOutputToStderr", "-Xlog:disable", "-Xlog:all=warning:stderr",
    ]

    /// A line of the program's output.
    private struct Line: Decodable {
        let event: String
        /// Number of the oplog or result, for its confirmation.
        let number: Int?
        let userId: String?
        let reason: String?
        let oplog: TortureOplog?
        let result: TortureResult?
    }

    private struct State {
        /// Calls of `submit` whose operations the process has not stored yet.
        var openSubmissions = 0
        /// Calls of `bind` that the client has not executed yet.
        var openBinds = 0
        /// The gateway has accepted the last bind.
        var isBound = false
        var isEnding = false
        /// The actions that follow the app's confirmation of an oplog or result, by its number.
        var confirmations: [Int: @Sendable () -> Void] = [:]
    }

    private let process: ChildProcess
    private let output: URL
    private let state = Mutex(State())

    /// - Parameters:
    ///   - command: the command that runs a test program, without its name.
    ///   - log: file to which the program's standard error is appended.
    init(_ start: TortureAppStart, command: [String], usesWebSocket: Bool, log: URL) throws {
        output = start.store.appendingPathExtension("out")
        process = try ChildProcess(
            command + Self.machineOptions + [
                "org.mobilesync.tests.TortureDriver", "--host", "127.0.0.1", "--port", "\(start.port)", "--ca",
                start.certificateAuthority,
                "--instance", start.instance, "--device", start.device, "--store", start.store.path, "--app-version",
                start.version, "--clock-offset-ms", "\(Int64(start.clockOffset / .milliseconds(1)))", "--transport",
                usesWebSocket ? "websocket" : "plain",
            ], takesInput: true, output: .file(output), errors: .endOf(log))
    }

    func run(on phone: TortureDevice) async throws {
        defer {
            process.signal(SIGKILL)
            process.waitUntilExit()
        }
        let output = try FileHandle(forReadingFrom: output)
        defer { try? output.close() }
        // The beginning of a line whose end is not written yet.
        var rest = Data()
        while true {
            // Checked first, so that the last read gets everything that the app has shown.
            let hasEnded = process.status != nil
            rest += try output.readToEnd() ?? Data()
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                try handle(rest[..<end], phone)
                rest = rest[rest.index(after: end)...]
            }
            if hasEnded { break }
            try await Task.sleep(for: Self.pollInterval)
        }
        guard state.withLock({ $0.isEnding }) else {
            throw TortureFailure("its process ended with \(process.status.map { "\($0)" } ?? "no status")")
        }
    }

    func end() async throws {
        let deadline = ContinuousClock.now + Self.submitLimit
        // Otherwise the run would not know whether an operation must be executed.
        while state.withLock({ $0.openSubmissions > 0 }), .now < deadline, !Task.isCancelled {
            try? await Task.sleep(for: Self.pollInterval)
        }
        let isStored = state.withLock { state in
            state.isEnding = true
            return state.openSubmissions == 0
        }
        process.signal(SIGKILL)
        if !isStored { throw TortureFailure("it did not store an operation within \(Self.submitLimit)") }
    }

    func bind(user: String, session: String) {
        state.withLock { state in
            state.openBinds += 1
            state.isBound = false
        }
        write("bind \(user) \(session)")
    }

    func submit(_ operations: [SyncOperation]) {
        state.withLock { $0.openSubmissions += 1 }
        let words = operations.map { "\($0.id) \($0.component) \($0.key) \($0.name)" }
        write("submit \(words.joined(separator: " "))")
    }

    /// Sends a command. It fails only after the end of the process, which ``run(on:)`` reports.
    private func write(_ command: String) { try? process.write(Data("\(command)\n".utf8)) }

    private func handle(_ json: Data, _ phone: TortureDevice) throws {
        let line = try JSONDecoder().decode(Line.self, from: json)
        switch (line.event, line.number) {
        case ("bindExecuted", _): state.withLock { $0.openBinds -= 1 }
        case ("bound", _): state.withLock { $0.isBound = $0.openBinds == 0 }
        // The event of an earlier bind can still be on its way.
        case ("caughtUp", _) where !state.withLock({ $0.isBound }): break
        case ("caughtUp", _): try phone.handle(.caughtUp(user: line.userId))
        case ("disconnected", _): try phone.handle(.disconnected(line.reason ?? ""))
        case ("sessionInvalid", _): try phone.handle(.sessionInvalid)
        case ("stored", _): state.withLock { $0.openSubmissions -= 1 }
        case ("oplog", let number?):
            guard let oplog = line.oplog, phone.receive(oplog) else { return }
            confirm(number) { phone.recordConfirmation(of: oplog) }
        case ("result", let number?):
            guard let result = line.result, phone.receive(result) else { return }
            confirm(number) { phone.recordConfirmation(of: result) }
        case ("confirmed", let number?): state.withLock { $0.confirmations.removeValue(forKey: number) }?()
        default: try phone.handle(.other("\(line.event) \(line.reason ?? "")"))
        }
    }

    private func confirm(_ number: Int, whenConfirmed: @escaping @Sendable () -> Void) {
        state.withLock { $0.confirmations[number] = whenConfirmed }
        write("confirm \(number)")
    }
}
