import BusMessages
import SyncModel

// News of a channel that does not go out at once, or exists nowhere else.
extension SessionStateMachine {
    /// What is new cannot go out at once: it is read later, and what cannot be read is kept.
    mutating func wait(
        for notice: ChannelNotice, isForThisDevice: Bool, _ cursor: inout ChannelCursor, _ key: ChannelKey,
        of identity: SessionIdentity, in world: SessionSurroundings
    ) -> [SessionAction] {
        cursor.learn(head: notice.upto)
        var isKept = false
        var lacksFilter = false
        switch withholding(key, of: identity, in: world) {
        case nil, .awaitsWord: isKept = isForThisDevice
        case .awaitsFilter: (isKept, lacksFilter) = (isForThisDevice, true)
        case .noLease, .notEligible: break
        }
        if isKept { cursor.keepLive(notice.entries) }
        cursors[key] = cursor
        // A channel that no registration has told of, such as one that was made anew, has no filter yet.
        if lacksFilter, !filters.areStale, phase == .open { return announce(in: world) }
        return readOn(in: world)
    }

    /// The entries of a notice that exist nowhere else and that this session has sent, or keeps until what lies before
    /// them has been read.
    func holds(_ notice: ChannelNotice, after actions: [SessionAction]) -> [Int64] {
        let sent = actions.flatMap { action -> [OplogID] in
            if case .push(_, let ids, notice.channelID) = action { return ids }
            return []
        }
        let kept = keysByChannelID[notice.channelID].flatMap { cursors[$0]?.live.map(\.id) } ?? []
        let held = Set(sent + kept)
        return notice.entries.filter { !$0.isPersistent && held.contains($0.id) }.map(\.id.value)
    }
}
