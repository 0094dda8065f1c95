import BusMessages
import SyncModel

// News of a channel that does not go out at once, or exists nowhere else.
extension SessionStateMachine {
    /// A notice or a page tells that these were recalled: they do not go out as re-reads or answers behind their
    /// tombstones (spec H7).
    mutating func dropRecalled(_ ids: [OplogID], channelID: Int64) {
        for id in ids {
            rereads.recall(id, channelID: channelID)
            requests.recall(id, channelID: channelID)
        }
    }

    /// What is new cannot go out at once: it is read later, and what cannot be read is kept.
    mutating func wait(
        for notice: ChannelNotice, isForThisDevice: Bool, _ cursor: inout ChannelCursor, _ key: ChannelKey,
        of identity: SessionIdentity, in world: SessionSurroundings
    ) -> [SessionAction] {
        var isKept = false
        var lacksFilter = false
        switch withholding(key, of: identity, in: world) {
        case nil, .awaitsWord:
            isKept = isForThisDevice
            // What comes now is no backlog (spec D10).
            _ = cursor.openBacklog()
        case .awaitsFilter: (isKept, lacksFilter) = (isForThisDevice, true)
        case .noLease, .notEligible: break
        }
        cursor.learn(head: notice.upto)
        if isKept { cursor.keepLive(notice.entries) }
        cursors[key] = cursor
        // A channel that no registration has told of, such as one that was made anew, has no filter yet.
        if lacksFilter, !filters.areStale, phase == .open { return announce(in: world) }
        return readOn(in: world)
    }

    /// What became of a notice's entries that exist nowhere else, after the session was told of it.
    func taken(of notice: ChannelNotice, in world: SessionSurroundings) -> TakenEntries {
        var taken = TakenEntries()
        guard let identity, phase == .opening || phase == .open, identity.isTarget(notice.address.target) else {
            return taken
        }
        let key = ChannelKey(kind: notice.address.target.kind, bizType: notice.address.bizType)
        let cursor = keysByChannelID[notice.channelID].flatMap { cursors[$0] }
        // Of a session that is being registered nobody knows yet whether it is eligible.
        let mayBeEligible = cursor == nil || isRegistering || isEligible(key, of: identity, in: world)
        for entry in notice.entries where !entry.isPersistent {
            if cursor?.holdsLive(entry.id) == true {
                taken.held.append(entry.id.value)
            } else if mayBeEligible, notice.owner.map({ $0 == identity.deviceID }) ?? true,
                entry.skipReason(for: identity.traits, now: world.databaseTime) == nil,
                cursor.flatMap({ filters[$0.channelID] })?.flows(entry.id, attributes: entry.attributes) != false
            {
                taken.missed.append(entry.id.value)
            }
        }
        return taken
    }

    private func isEligible(
        _ key: ChannelKey, of identity: SessionIdentity, in world: SessionSurroundings
    ) -> Bool {
        if case .notEligible = withholding(key, of: identity, in: world) { return false }
        return true
    }
}
