import SyncModel

/// The waits of unconfirmed oplogs on the resend ladder, in counted time.
///
/// Each channel has a clock of its own. It runs only while a connection is open, the app reads the channel, and the
/// channel's user is bound. The memory is small and constant for each unconfirmed oplog.
struct ResendSchedule {
    /// A handed-out oplog.
    struct Wait: Hashable, Sendable {
        /// The channel's row in the local store.
        let channelRow: Int64
        let oplogID: Int64
        /// The counts of the oplog, including the last hand-out.
        let state: ResendLadder.State
    }

    private struct Entry {
        let wait: Wait
        /// Distinguishes the entry from earlier waits of the same oplog, which are ignored.
        let number: UInt64
        let startedAt: Duration
    }

    private struct Timeline {
        /// The counted time up to `runningSince`.
        var elapsed = Duration.zero
        /// The value is nil while the clock is stopped.
        var runningSince: ContinuousClock.Instant?
        /// Queues by the number of resends. All entries of a queue wait equally long, so the oldest entry is due first.
        var queues = [ArraySlice<Entry>](repeating: [], count: Limits.resendRepeats + 1)
        /// The numbers of the current waits, by oplog.
        var numbers: [Int64: UInt64] = [:]

        func time(at now: ContinuousClock.Instant) -> Duration {
            elapsed + (runningSince.map { max(.zero, $0.duration(to: now)) } ?? .zero)
        }

        func isInForce(_ entry: Entry) -> Bool { numbers[entry.wait.oplogID] == entry.number }

        /// Removes outdated entries from the heads of the queues.
        mutating func dropOutdated() {
            for level in queues.indices {
                while let first = queues[level].first, !isInForce(first) { queues[level].removeFirst() }
            }
        }
    }

    /// The waits. A change also applies to waits that have begun.
    var ladder = ResendLadder()
    private var timelines: [Int64: Timeline] = [:]
    private var lastNumber: UInt64 = 0

    /// The number of waiting oplogs.
    var count: Int { timelines.values.reduce(0) { $0 + $1.numbers.count } }

    /// Begins the wait of a handed-out oplog, and replaces an earlier one.
    ///
    /// - Parameter isCounted: whether the channel's time counts now.
    mutating func start(_ wait: Wait, isCounted: Bool, at now: ContinuousClock.Instant) {
        lastNumber += 1
        var timeline = timelines.removeValue(forKey: wait.channelRow) ?? Timeline()
        Self.run(&timeline, isCounted, at: now)
        timeline.numbers[wait.oplogID] = lastNumber
        timeline.queues[wait.state.repeats].append(
            Entry(wait: wait, number: lastNumber, startedAt: timeline.time(at: now)))
        timeline.dropOutdated()
        timelines[wait.channelRow] = timeline
    }

    /// Ends the wait of an oplog after its confirmation.
    mutating func stop(channelRow: Int64, oplogID: Int64) {
        guard timelines[channelRow]?.numbers.removeValue(forKey: oplogID) != nil else { return }
        timelines[channelRow]?.dropOutdated()
        forgetIfEmpty(channelRow)
    }

    /// Starts the clocks of the channels whose time counts, and stops the others.
    mutating func updateClocks(at now: ContinuousClock.Instant, where isCounted: (Int64) -> Bool) {
        for row in timelines.keys {
            guard var timeline = timelines[row] else { continue }
            Self.run(&timeline, isCounted(row), at: now)
            timelines[row] = timeline
        }
    }

    private static func run(_ timeline: inout Timeline, _ isCounted: Bool, at now: ContinuousClock.Instant) {
        guard isCounted != (timeline.runningSince != nil) else { return }
        timeline.elapsed = timeline.time(at: now)
        timeline.runningSince = isCounted ? now : nil
    }

    /// Removes the waits that are over, and returns them by channel and oplog.
    mutating func removeDue(at now: ContinuousClock.Instant) -> [Wait] {
        var due: [Wait] = []
        for row in timelines.keys.sorted() {
            guard let timeline = timelines[row], timeline.runningSince != nil else { continue }
            let time = timeline.time(at: now)
            for queue in timeline.queues {
                for entry in queue {
                    guard entry.startedAt + ladder.next(after: entry.wait.state).wait <= time else { break }
                    if timeline.isInForce(entry) { due.append(entry.wait) }
                }
            }
        }
        for wait in due { stop(channelRow: wait.channelRow, oplogID: wait.oplogID) }
        return due.sorted { ($0.channelRow, $0.oplogID) < ($1.channelRow, $1.oplogID) }
    }

    /// Returns the time when the next wait ends if all clocks stay as they are; nil when no running clock has a wait.
    func nextDue(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        timelines.values.compactMap { timeline in
            guard timeline.runningSince != nil else { return nil }
            let time = timeline.time(at: now)
            return timeline.queues.compactMap { queue in
                queue.first.map { now + ($0.startedAt + ladder.next(after: $0.wait.state).wait - time) }
            }.min()
        }.min()
    }

    private mutating func forgetIfEmpty(_ row: Int64) {
        if timelines[row]?.numbers.isEmpty == true { timelines[row] = nil }
    }
}
