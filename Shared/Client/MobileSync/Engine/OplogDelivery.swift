import SyncModel

/// The hand-outs of stored oplogs to the app, and their resends and dead letters. Not thread-safe.
final class OplogDelivery {
    private let store: LocalStore
    private let sharedState: ClientSharedState
    /// The first wait of the resend ladder in the configuration; nil for the gateway's value.
    private let configuredFirstResend: Duration?
    private var handOut: HandOutSelector
    private var schedule = ResendSchedule()

    /// - Throws: `SyncError.store` when the store cannot start over.
    init(store: LocalStore, sharedState: ClientSharedState, firstResend: Duration?) throws(SyncError) {
        self.store = store
        self.sharedState = sharedState
        configuredFirstResend = firstResend
        handOut = HandOutSelector(channels: try store.startOver())
        setFirstResend(nil)
    }

    /// Hands unconfirmed oplogs out again, as a new client does.
    ///
    /// - Parameter channels: the rows of the channels with waiting oplogs.
    func startOver(with channels: [Int64]) {
        handOut = HandOutSelector(channels: channels)
        let ladder = schedule.ladder
        schedule = ResendSchedule()
        schedule.ladder = ladder
    }

    /// Sets the first wait that the gateway names; nil for none. The configured wait has precedence.
    func setFirstResend(_ named: Duration?) {
        schedule.ladder = ResendLadder(firstWait: configuredFirstResend ?? named ?? Limits.firstResend)
    }

    /// Marks channels as having waiting oplogs, and wakes the app's readers.
    func markUnread(_ channels: Set<Int64>) {
        handOut.markUnread(channels)
        sharedState.dataSignals.send(())
    }

    /// Returns the next oplog for the app; nil when there is none now.
    ///
    /// - Parameters:
    ///   - bizType: a Sync ID; nil for all.
    ///   - row: the row of a channel; nil for all.
    ///   - isOpen: whether a connection is open.
    func next(of bizType: String?, row: Int64?, isOpen: Bool) throws(SyncError) -> SyncOplog? {
        guard let oplog = try handOut.next(of: bizType, userID: sharedState.user?.userID, row: row, from: store) else {
            return nil
        }
        start(
            ResendSchedule.Wait(channelRow: oplog.channelRow, oplogID: oplog.oplogID, state: oplog.state),
            isOpen: isOpen)
        return oplog
    }

    /// Records durably that the app has processed the oplogs.
    func confirm(_ oplogs: [SyncOplog]) throws(SyncError) {
        try store.oplogs.confirm(oplogs)
        for oplog in oplogs { schedule.stop(channelRow: oplog.channelRow, oplogID: oplog.oplogID) }
    }

    // MARK: Resend ladder

    /// The time when the next wait of an oplog ends; nil when no time counts.
    var nextDue: ContinuousClock.Instant? { schedule.nextDue(after: .now) }

    /// Updates the clocks of the channels. Call it after a change of a condition in `isCounted`.
    func updateClocks(isOpen: Bool) { schedule.updateClocks(at: .now) { isCounted($0, isOpen: isOpen) } }

    /// Queues the oplogs whose wait is over for a resend, or marks them as dead letters.
    ///
    /// - Returns: whether there are new dead letters to report.
    /// - Throws: `SyncError.store`; then the waits of the dead letters begin again.
    func processDue(isOpen: Bool) throws(SyncError) -> Bool {
        let due = schedule.removeDue(at: .now)
        var dead: [ResendSchedule.Wait] = []
        for wait in due {
            switch schedule.ladder.next(after: wait.state).step {
            case .handOut: handOut.enqueueResend(wait)
            case .dead: dead.append(wait)
            }
        }
        if dead.count < due.count { sharedState.dataSignals.send(()) }
        guard !dead.isEmpty else { return false }
        do throws(SyncError) {
            try store.oplogs.markDead(dead)
        } catch {
            for wait in dead { start(wait, isOpen: isOpen) }
            throw error
        }
        return true
    }

    private func start(_ wait: ResendSchedule.Wait, isOpen: Bool) {
        schedule.start(wait, isCounted: isCounted(wait.channelRow, isOpen: isOpen), at: .now)
    }

    /// Whether time counts for a channel now: a connection is open, the app reads the channel's Sync ID, the Sync ID is
    /// not suspended, and the channel's user is bound.
    private func isCounted(_ channelRow: Int64, isOpen: Bool) -> Bool {
        guard isOpen, let channel = store.channels.channel(row: channelRow) else { return false }
        return channel.isVisible(to: sharedState.user?.userID) && sharedState.isRead(channel.key.bizType)
            && !store.subscriptions.isSuspended(channel.key.bizType)
    }
}
