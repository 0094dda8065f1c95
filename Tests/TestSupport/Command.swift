import ChildProcesses
package import Foundation

/// Runs a program until it ends.
package enum Command {
    /// Returns the exit status, and standard output and standard error together.
    package static func run(
        _ executable: URL, _ arguments: [String], environment: [String: String]
    ) async throws -> (status: Int32, output: String) {
        let file = URL(fileURLWithPath: NSTemporaryDirectory()).appending(path: "command-\(UUID().uuidString)")
        let process = try ChildProcess(
            [executable.path] + arguments, environment: environment, output: .file(file))
        defer { try? FileManager.default.removeItem(at: file) }
        await withCheckedContinuation { continuation in process.onExit { continuation.resume() } }
        return (try requireValue(process.status, "no status"), (try? String(contentsOf: file, encoding: .utf8)) ?? "")
    }
}
