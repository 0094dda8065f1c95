package import Foundation
import Glibc

/// Runs a program until it ends.
package enum Command {
    /// Returns the exit status, and standard output and standard error together.
    package static func run(
        _ executable: URL, _ arguments: [String], environment: [String: String]
    ) async throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = executable
        process.arguments = arguments
        process.environment = environment
        process.standardInput = FileHandle.nullDevice
        let file = URL(fileURLWithPath: NSTemporaryDirectory()).appending(path: "command-\(UUID().uuidString)")
        _ = FileManager.default.createFile(atPath: file.path, contents: nil)
        defer { try? FileManager.default.removeItem(at: file) }
        let output = try FileHandle(forWritingTo: file)
        process.standardOutput = output
        process.standardError = output
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            process.terminationHandler = { _ in continuation.resume() }
            do {
                try process.runWithOpenSignals()
            } catch {
                process.terminationHandler = nil
                continuation.resume(throwing: error)
            }
        }
        return (process.terminationStatus, (try? String(contentsOf: file, encoding: .utf8)) ?? "")
    }
}

extension Process {
    /// Starts the program with no signal blocked. Threads of the pool block most signals, and a child inherits the
    /// mask.
    package func runWithOpenSignals() throws {
        var (none, before) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try run()
    }
}
