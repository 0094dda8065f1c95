import Foundation
import Glibc
import Synchronization

/// A program that the tool has started.
final class ChildProcess: Sendable {
    /// The exit status, once there is one.
    private final class Ending: Sendable {
        let status = Mutex<Int32?>(nil)
    }

    private let identifier: pid_t
    private let ending = Ending()

    /// Starts a program, found by PATH, with its output in files.
    init(_ command: [String], output: URL, errors: URL) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = command
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = try Self.file(output)
        process.standardError = try Self.file(errors)
        process.terminationHandler = { [ending] process in
            ending.status.withLock { $0 = process.terminationStatus }
        }
        try Self.runWithOpenSignals(process)
        identifier = process.processIdentifier
    }

    private static func file(_ url: URL) throws -> FileHandle {
        _ = FileManager.default.createFile(atPath: url.path, contents: nil)
        return try FileHandle(forWritingTo: url)
    }

    /// Threads of the pool block most signals, and a child inherits that: it could not be told to end.
    private static func runWithOpenSignals(_ process: Process) throws {
        var (none, before) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try process.run()
    }

    /// The exit status; nil while it runs.
    var status: Int32? { ending.status.withLock { $0 } }

    /// Sends a signal, unless the program has ended.
    func signal(_ number: Int32) {
        ending.status.withLock { if $0 == nil { kill(identifier, number) } }
    }

    /// Waits for the end; false when it does not come in time.
    func ends(within limit: Duration) async -> Bool {
        let deadline = ContinuousClock.now + limit
        while status == nil {
            // A cancelled wait must not spin.
            guard .now < deadline, (try? await Task.sleep(for: .milliseconds(5))) != nil else { return status != nil }
        }
        return true
    }
}
