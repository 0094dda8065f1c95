import DeliveryHistory
import Foundation
import Synchronization

/// All events at the edges of the service in a torture run, in one order. Each event is checked at once and written to
/// a file with one JSON object per line.
final class TortureHistory: Sendable {
    private struct Line<Event: Encodable>: Encodable {
        /// Milliseconds since the start of the run.
        let at: Int64
        let event: Event
    }

    private struct State {
        var checker = HistoryChecker()
        var operations = OperationChecker()
        var presence = PresenceChecker()
        var owners = OwnerChecker()
        var lines = Data()
    }

    private static let flushBytes = 1 << 16

    private let start = ContinuousClock.now
    private let state = Mutex(State())
    private let file: FileHandle
    private let encoder = JSONEncoder()

    /// - Parameter path: path of the file, which is created or emptied.
    init(path: String) throws {
        try Data().write(to: URL(filePath: path))
        file = try FileHandle(forWritingTo: URL(filePath: path))
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    }

    /// Time since the start of the run.
    var elapsed: Duration { start.duration(to: .now) }

    func observe(_ event: HistoryEvent) {
        state.withLock { state in
            let now = elapsed
            state.checker.observe(event, at: now)
            write(event, now, &state)
        }
    }

    /// Records an event that concerns the sessions of devices.
    func observe(_ event: PresenceEvent) {
        state.withLock { state in
            let now = elapsed
            state.presence.observe(event, at: now)
            // The delivery history contains these events already.
            switch event {
            case .called, .answered, .given: break
            default: write(event, now, &state)
            }
        }
    }

    /// Records an event that concerns the owners of single-device data.
    func observe(_ event: OwnerChecker.Event) {
        state.withLock { state in
            let now = elapsed
            state.owners.observe(event, at: now)
            write(event, now, &state)
        }
    }

    private func write(_ event: some Encodable, _ now: Duration, _ state: inout State) {
        let milliseconds = Int64(now / .milliseconds(1))
        guard let line = try? encoder.encode(Line(at: milliseconds, event: event)) else { return }
        state.lines += line + Data("\n".utf8)
        if state.lines.count >= Self.flushBytes { flush(&state) }
    }

    /// Reads or changes the delivery checker.
    func ask<Answer: Sendable>(_ question: (inout HistoryChecker) -> Answer) -> Answer {
        state.withLock { state in
            state.checker.expire(at: elapsed)
            return question(&state.checker)
        }
    }

    /// Reads or changes the delivery checker, and reads the owners of single-device data.
    func askOwners<Answer: Sendable>(_ question: (inout HistoryChecker, OwnerChecker) -> Answer) -> Answer {
        state.withLock { state in
            state.checker.expire(at: elapsed)
            return question(&state.checker, state.owners)
        }
    }

    /// Number of open items that began before `time`. Single-device data counts only with a certain and connected
    /// owner.
    func open(since time: Duration) -> Int {
        askOwners { checker, owners in checker.open(since: time, unless: Self.isUnservable(owners, time)) }
    }

    /// Describes the first items of ``open(since:)``.
    func describeOpen(since time: Duration, upTo limit: Int, about: (_ device: String) -> String) -> [String] {
        askOwners { checker, owners in
            checker.describeOpen(since: time, upTo: limit, unless: Self.isUnservable(owners, time), about: about)
        }
    }

    /// Adds a fault for each device that lacks a push.
    func expectNothingOwed() {
        let now = elapsed
        askOwners { checker, owners in checker.expectNothingOwed(at: now, unless: Self.isUnservable(owners, now)) }
    }

    private static func isUnservable(_ owners: OwnerChecker, _ time: Duration) -> (HistoryTarget) -> Bool {
        { target in
            guard target.bizType == TortureWorld.solo(in: target.instance).bizType else { return false }
            return !owners.isServable(TortureWorld.name(target.instance, target.target), since: time)
        }
    }

    /// The presence checker, after its checks up to now.
    var presence: PresenceChecker {
        state.withLock { state in
            state.presence.check(at: elapsed)
            return state.presence
        }
    }

    /// Reads or changes the operation checker.
    ///
    /// - Parameter question: also receives the current time.
    func operations<Answer: Sendable>(_ question: (inout OperationChecker, Duration) -> Answer) -> Answer {
        state.withLock { question(&$0.operations, elapsed) }
    }

    /// Writes the remaining lines and closes the file.
    func close() {
        state.withLock { flush(&$0) }
        try? file.close()
    }

    private func flush(_ state: inout State) {
        try? file.write(contentsOf: state.lines)
        state.lines.removeAll(keepingCapacity: true)
    }
}
