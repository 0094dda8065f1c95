import DeviceProtocol
import SyncModel

/// The local part of histories and summaries, and their merge with the pages of the server. Not thread-safe.
struct ChannelLists {
    let store: LocalStore
    let sharedState: ClientSharedState

    /// Returns the stored history of a Sync ID, newest first, and the id at which the server must continue.
    func history(
        of bizType: String, _ conversation: String?, before: Int64?, count: Int
    ) throws(SyncError) -> LocalHistory {
        let userID = sharedState.user?.userID
        guard let channel = channel(of: bizType, visibleTo: userID) else {
            return LocalHistory(oplogs: [], allStored: [], requestBefore: before ?? 0, userID: userID)
        }
        let all = try store.oplogs.history(of: channel, conversation, before: before, limit: count)
        // A caller that names an id above the local range shows that oplogs in between can be missing. So does a
        // stored oplog above it, from a page of a conversation.
        let isAbove =
            before.map { $0 > channel.range.upto.value + 1 } ?? false
            || all.first.map { $0.oplogID > channel.range.upto.value } ?? false
        let complete = isAbove ? [] : all.filter { $0.oplogID > channel.range.from.value }
        // True when the store has every oplog from the first one on.
        let isAll = channel.range.from == .zero && channel.range.upto > .zero && !isAbove
        let bottom = channel.range.upto == .zero || isAbove ? Int64.max : channel.range.from.value + 1
        let requestBefore = min(before ?? Int64.max, bottom)
        return LocalHistory(
            oplogs: complete, allStored: all,
            requestBefore: isAll ? nil : requestBefore == Int64.max ? 0 : requestBefore,
            userID: userID)
    }

    /// Returns the newest stored oplogs of a Sync ID, newest first.
    func newest(of bizType: String, _ conversation: String?, limit: Int) throws(SyncError) -> SyncOplogList {
        guard let channel = channel(of: bizType, visibleTo: sharedState.user?.userID) else {
            return SyncOplogList(items: [], unconfirmed: 0)
        }
        return SyncOplogList(
            items: try store.oplogs.newest(of: channel, conversation, limit: limit),
            unconfirmed: try store.oplogs.unconfirmed(in: channel, conversation))
    }

    /// Returns the conversations of a Sync ID on the device, and the bound user.
    func conversations(
        of bizType: String
    ) throws(SyncError) -> (conversations: [ConversationName: SyncConversation], userID: String?) {
        let userID = sharedState.user?.userID
        guard let channel = channel(of: bizType, visibleTo: userID) else { return ([:], userID) }
        var conversations: [ConversationName: SyncConversation] = [:]
        for local in try store.oplogs.conversations(of: channel) {
            conversations[local.name] = SyncConversation(
                bizType: bizType, name: local.name.text, last: local.last, unread: local.unread, notReceived: nil)
        }
        return (conversations, userID)
    }

    /// Stores that the user has read a conversation up to an oplog.
    func markRead(_ conversation: String, of bizType: String, upTo oplogID: Int64) throws(SyncError) {
        guard let channel = channel(of: bizType, visibleTo: sharedState.user?.userID) else { return }
        try store.oplogs.markRead(conversation, upTo: oplogID, in: channel)
    }

    /// Returns the channel of a Sync ID, the one with the newest data when the user can see several.
    private func channel(of bizType: String, visibleTo userID: String?) -> LocalChannel? {
        store.channels.all(of: bizType, visibleTo: userID).max { ($0.position, $0.row) < ($1.position, $1.row) }
    }

    /// Stores a page of the history and returns its oplogs.
    ///
    /// - Parameters:
    ///   - userID: the bound user at the time of the request.
    ///   - list: the local part that the page continues.
    func storeHistory(
        _ page: Mss_Device_V1_HistoryPage, bizType: String, _ conversation: String?, before: Int64,
        of userID: String?, in list: LocalHistory
    ) throws(SyncError) -> [SyncOplog] {
        guard let kind = SyncModel.ChannelKind(wire: page.kind), page.head > 0 else { return [] }
        let (asked, began) = (userID ?? "", list.userID ?? "")
        guard !kind.needsUser || (asked.isSame(as: began) && sharedState.user?.userID.isSame(as: asked) == true) else {
            throw SyncError(.notEligible, "another user has been bound meanwhile")
        }
        let key = LocalChannel.Key(kind: kind, userID: kind.needsUser ? userID ?? "" : "", bizType: bizType)
        return try store.oplogs.storeHistory(page, of: key, conversation, before: before)
    }

    /// Returns the local state of the channels of the device and the bound user.
    func summaries() throws(SyncError) -> [SyncChannelSummary] {
        var summaries: [SyncChannelSummary] = []
        for channel in store.channels.all(visibleTo: sharedState.user?.userID) {
            summaries.append(
                SyncChannelSummary(
                    bizType: channel.key.bizType, userID: channel.key.userID.isEmpty ? nil : channel.key.userID,
                    last: try store.oplogs.history(of: channel, nil, before: nil, limit: 1).first,
                    unconfirmed: try store.oplogs.unconfirmed(in: channel), notReceived: nil))
        }
        return summaries
    }

    /// Merges the server's summary of a channel with the local one.
    ///
    /// - Parameter bound: the bound user at the time of the request.
    func merged(
        _ channel: Mss_Device_V1_ChannelSummary, of bound: String?, _ local: SyncChannelSummary?
    ) -> SyncChannelSummary {
        let kind = SyncModel.ChannelKind(wire: channel.kind) ?? .device
        let userID = kind.needsUser ? bound : nil
        // The local summary can belong to a previously bound user.
        let local = local.flatMap { ($0.userID ?? "").isSame(as: userID ?? "") ? $0 : nil }
        return SyncChannelSummary(
            bizType: channel.bizType, userID: userID, last: newer(channel, of: bound, than: local?.last),
            unconfirmed: local?.unconfirmed ?? 0, notReceived: Int(channel.waiting))
    }

    /// Merges the server's summary of a conversation with the local one. Returns nil for one that has no oplog.
    ///
    /// - Parameter bound: the bound user at the time of the request.
    func merged(
        _ channel: Mss_Device_V1_ChannelSummary, of bound: String?, _ local: SyncConversation?
    ) -> SyncConversation? {
        let userID = SyncModel.ChannelKind(wire: channel.kind)?.needsUser == true ? bound : nil
        // The local channel can be of another kind, after a change of the push scope.
        let local = local.flatMap { ($0.last.userID ?? "").isSame(as: userID ?? "") ? $0 : nil }
        return newer(channel, of: bound, than: local?.last).map { last in
            SyncConversation(
                bizType: channel.bizType, name: channel.conversation, last: last, unread: local?.unread ?? 0,
                notReceived: Int(channel.waiting))
        }
    }

    /// Returns the newest oplog of a server's summary, or the local one when that is newer.
    private func newer(
        _ channel: Mss_Device_V1_ChannelSummary, of bound: String?, than local: SyncOplog?
    ) -> SyncOplog? {
        guard channel.hasLast, channel.last.oplogID > local?.oplogID ?? 0 else { return local }
        let kind = SyncModel.ChannelKind(wire: channel.kind) ?? .device
        // No channel has row 0, so a confirmation of this oplog has no effect.
        let key = LocalChannel.Key(kind: kind, userID: kind.needsUser ? bound ?? "" : "", bizType: channel.bizType)
        return store.oplogs.oplog(from: channel.last, of: LocalChannel(row: 0, key: key, position: .zero))
    }
}
