import SyncModel

/// When oplogs that the app has and did not confirm come again: the resend ladder in counted time.
///
/// Each channel has a clock of its own that runs only while its time counts: a connection is open, the app takes the
/// channel's data, and its user is bound. It holds a few words for each oplog that the app holds unconfirmed.
struct ResendSchedule {
    /// An oplog that was handed out.
    struct Wait: Hashable, Sendable {
        /// The channel's row in the local store.
        let channelRow: Int64
        let oplogID: Int64
        /// What the oplog has been through, the last hand-out included.
        let state: ResendLadder.State
    }

    private struct Entry {
        let wait: Wait
        /// Tells it from an earlier wait of the same oplog, which is passed over.
        let number: UInt64
        let startedAt: Duration
    }

    private struct Timeline {
        /// Counted time up to `runningSince`.
        var elapsed = Duration.zero
        /// Nil while the clock stands.
        var runningSince: ContinuousClock.Instant?
        /// By repeats made. All entries of a queue wait for the same time, so the first to begin is the first due.
        var queues = [ArraySlice<Entry>](repeating: [], count: Limits.resendRepeats + 1)
        /// The waits that are in force, by oplog.
        var numbers: [Int64: UInt64] = [:]

        func time(at now: ContinuousClock.Instant) -> Duration {
            elapsed + (runningSince.map { max(.zero, $0.duration(to: now)) } ?? .zero)
        }

        func isInForce(_ entry: Entry) -> Bool { numbers[entry.wait.oplogID] == entry.number }

        /// Leaves at the head of every queue an entry that is in force.
        mutating func dropOutdated() {
            for level in queues.indices {
                while let first = queues[level].first, !isInForce(first) { queues[level].removeFirst() }
            }
        }
    }

    /// The waits; a change holds for those that have begun too.
    var ladder = ResendLadder()
    private var timelines: [Int64: Timeline] = [:]
    private var lastNumber: UInt64 = 0

    /// Oplogs that wait.
    var count: Int { timelines.values.reduce(0) { $0 + $1.numbers.count } }

    /// An oplog was handed out: its wait begins, in place of one that it had.
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

    /// An oplog was confirmed: it waits no more.
    mutating func stop(channelRow: Int64, oplogID: Int64) {
        guard timelines[channelRow]?.numbers.removeValue(forKey: oplogID) != nil else { return }
        timelines[channelRow]?.dropOutdated()
        forgetIfEmpty(channelRow)
    }

    /// Lets the clocks of these channels run from now on, and all others stand.
    mutating func keepTime(at now: ContinuousClock.Instant, where isCounted: (Int64) -> Bool) {
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

    /// The waits that are over, by channel and oplog; they are out of the schedule then.
    mutating func takeDue(at now: ContinuousClock.Instant) -> [Wait] {
        #if KNOWN_BAD
            if KnownBad.clientNeverRepeats.isOn { return [] }
        #endif
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

    /// When the next wait is over if all clocks go on as they do; nil when nothing waits in a running one.
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
