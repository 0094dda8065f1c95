import Foundation
import ServiceLifecycle
import UnixSignals

/// Ends the process at once when a second signal asks for it; the first one starts the graceful shutdown.
struct SecondSignalExit: Service {
    func run() async throws {
        var seen = 0
        for await signal in await UnixSignalsSequence(trapping: .sigterm, .sigint).cancelOnGracefulShutdown() {
            seen += 1
            // As the shell reports a process that a signal ended.
            if seen == 2 { _exit(128 + signal.rawValue) }
        }
    }
}
