import DeliveryHistory
import Foundation
import Synchronization

/// All that happens at the edges of the service in a torture run, in one order: checked at once, and kept as a file of
/// one JSON object a line.
final class TortureHistory: Sendable {
    private struct Line: Encodable {
        /// Milliseconds since the run's beginning.
        let at: Int64
        let event: HistoryEvent
    }

    private struct State {
        var checker = HistoryChecker()
        var operations = OperationChecker()
        var lines = Data()
    }

    private static let flushBytes = 1 << 16

    private let start = ContinuousClock.now
    private let state = Mutex(State())
    private let file: FileHandle
    private let encoder = JSONEncoder()

    /// - Parameter path: of the file, which is made anew.
    init(path: String) throws {
        try Data().write(to: URL(filePath: path))
        file = try FileHandle(forWritingTo: URL(filePath: path))
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    }

    /// Since the run's beginning.
    var elapsed: Duration { start.duration(to: .now) }

    func observe(_ event: HistoryEvent) {
        state.withLock { state in
            let now = elapsed
            state.checker.observe(event, at: now)
            let milliseconds = Int64(now / .milliseconds(1))
            guard let line = try? encoder.encode(Line(at: milliseconds, event: event)) else { return }
            state.lines += line + Data("\n".utf8)
            if state.lines.count >= Self.flushBytes { flush(&state) }
        }
    }

    /// Looks at what has been found, or adds to it.
    func ask<Answer: Sendable>(_ question: (inout HistoryChecker) -> Answer) -> Answer {
        state.withLock { question(&$0.checker) }
    }

    /// Tells of operations, or looks at what has been found of them.
    ///
    /// - Parameter question: is given the time as well.
    func operations<Answer: Sendable>(_ question: (inout OperationChecker, Duration) -> Answer) -> Answer {
        state.withLock { question(&$0.operations, elapsed) }
    }

    /// Writes what is not yet in the file.
    func close() {
        state.withLock { flush(&$0) }
        try? file.close()
    }

    private func flush(_ state: inout State) {
        try? file.write(contentsOf: state.lines)
        state.lines.removeAll(keepingCapacity: true)
    }
}
