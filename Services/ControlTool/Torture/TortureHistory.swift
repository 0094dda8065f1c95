import DeliveryHistory
import Foundation
import Synchronization

/// All that happens at the edges of the service in a torture run, in one order: checked at once, and kept as a file of
/// one JSON object a line.
final class TortureHistory: Sendable {
    private struct Line<Event: Encodable>: Encodable {
        /// Milliseconds since the run's beginning.
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
            write(event, now, &state)
        }
    }

    /// Takes what concerns the sessions of devices.
    func observe(_ event: PresenceEvent) {
        state.withLock { state in
            let now = elapsed
            state.presence.observe(event, at: now)
            // Every push has these in the history already.
            switch event {
            case .called, .answered, .given: break
            default: write(event, now, &state)
            }
        }
    }

    /// Takes what concerns the owners of single-device data.
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

    /// Looks at what has been found, or adds to it.
    func ask<Answer: Sendable>(_ question: (inout HistoryChecker) -> Answer) -> Answer {
        state.withLock { state in
            state.checker.expire(at: elapsed)
            return question(&state.checker)
        }
    }

    /// Looks at the owners of single-device data as well.
    func askOwners<Answer: Sendable>(_ question: (inout HistoryChecker, OwnerChecker) -> Answer) -> Answer {
        state.withLock { state in
            state.checker.expire(at: elapsed)
            return question(&state.checker, state.owners)
        }
    }

    /// What is open since a time; single-device data only where its owner is certain and there.
    func open(since time: Duration) -> Int {
        askOwners { checker, owners in checker.open(since: time, unless: Self.isUnservable(owners, time)) }
    }

    /// The first of what is open since a time, in words.
    func describeOpen(since time: Duration, upTo limit: Int, about: (_ device: String) -> String) -> [String] {
        askOwners { checker, owners in
            checker.describeOpen(since: time, upTo: limit, unless: Self.isUnservable(owners, time), about: about)
        }
    }

    /// All that should have been given was given, or it is a fault.
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

    /// Looks at what was found of sessions, once what is late by now is found.
    var presence: PresenceChecker {
        state.withLock { state in
            state.presence.check(at: elapsed)
            return state.presence
        }
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
