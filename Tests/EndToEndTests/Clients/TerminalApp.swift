import ChildProcesses
import Foundation
import Glibc
import TestSupport
import Testing

/// An app with a user interface of lines, as a process whose standard input the test writes.
final class TerminalApp: Sendable {
    private static let limit: Duration = .seconds(20)

    private let process: ChildProcess
    private let log: URL

    /// Starts the app.
    ///
    /// - Parameters:
    ///   - command: the program and its arguments; the program is found by its path.
    ///   - folder: the working directory, which also receives the output.
    init(_ command: [String], named name: String, in folder: URL) throws {
        log = folder.appending(path: "\(name)-\(UUID().uuidString).log")
        process = try ChildProcess(
            command, environment: ["PATH": "\(StackPlan.binaries.path):/usr/bin:/bin", "HOME": folder.path],
            in: folder, takesInput: true, output: .file(log))
    }

    /// Everything that the app has written.
    var output: String { (try? String(contentsOf: log, encoding: .utf8)) ?? "" }

    /// The lines of the present screen: those before the last empty line.
    var screen: [String] {
        let screens = output.components(separatedBy: "\n\n").dropLast()
        return screens.last?.components(separatedBy: "\n") ?? []
    }

    /// Types a line, and does not wait.
    func write(_ line: String) throws { try process.write(Data("\(line)\n".utf8)) }

    /// Types a line, and waits until the screen is this one.
    func type(_ line: String, shows lines: [String]) async throws {
        try write(line)
        do {
            try await eventually("\(line) shows \(lines)", within: Self.limit) { self.screen == lines }
        } catch {
            throw Failure("\(line) shows \(screen), not \(lines)")
        }
    }

    /// Types a line, and waits until the screen contains a text.
    func type(_ line: String, shows text: String) async throws {
        try write(line)
        try await shows(text)
    }

    /// Waits until the screen contains a text.
    func shows(_ text: String) async throws {
        do {
            try await eventually(text, within: Self.limit) { self.screen.contains { $0.contains(text) } }
        } catch {
            throw Failure("the screen lacks \(text): \(screen)")
        }
    }

    /// Kills the process.
    func kill() {
        process.signal(SIGKILL)
        process.waitUntilExit()
    }

    /// Types `quit`.
    ///
    /// - Returns: the exit status.
    func quit() async throws -> Int32 {
        try write("quit")
        try await eventually("the app ends", within: Self.limit) { self.process.status != nil }
        return try requireValue(process.status, "the exit status")
    }

    /// Ends the process, if it has not ended.
    func stop() { if process.status == nil { kill() } }
}
