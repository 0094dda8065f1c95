import ArgumentParser
import Foundation
import Logging

/// `app`: the app on one device.
struct AppCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "app", abstract: "Runs the app of one device in this terminal.",
        discussion: "The folder has meta.config, and mss-ca.pem for a private authority. Commands: "
            + Command.usages.joined(separator: "; ") + ".")

    @Option(help: "The device's folder.")
    var folder: String
    @Option(help: "The address of the app's backend.")
    var backend = "http://127.0.0.1:7195"

    func run() async throws {
        // The screen shows the state of the connection. Errors are retried and not shown.
        let logger = Logger(label: "field") { _ in SwiftLogNoOpLogHandler() }
        let device = try FieldDevice(folder: URL(filePath: folder), address: backend, logger: logger)
        try await Terminal(device: device, lines: StandardInput.lines()).run()
    }
}

/// The lines of standard input, which a thread of its own reads.
private enum StandardInput {
    static func lines() -> AsyncStream<String> {
        let (lines, continuation) = AsyncStream.makeStream(of: String.self)
        Thread {
            while let line = readLine() { continuation.yield(line) }
            continuation.finish()
        }.start()
        return lines
    }
}
