import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// What the app asks for beside its data: lists, summaries, subscriptions.
extension ClientEngine {
    // MARK: Lists

    /// What is here of a business type, newest first, and what has to be asked for to go on.
    func localHistory(of bizType: String, before: Int64?, count: Int) throws(SyncError) -> LocalHistory {
        let userID = board.user?.userID
        let channels = store.channels(of: bizType, visibleTo: userID)
        guard let channel = channels.max(by: { ($0.position, $0.row) < ($1.position, $1.row) }) else {
            return LocalHistory(oplogs: [], islands: [], askBefore: before ?? 0, userID: userID)
        }
        let all = try store.history(of: channel, before: before, limit: count)
        // Who knows of an id above what is here knows that something in between may be lacking.
        let isAbove = before.map { $0 > channel.range.upto.value + 1 } ?? false
        let complete = isAbove ? [] : all.filter { $0.oplogID > channel.range.from.value }
        // Nothing has come yet, or everything from the first oplog on is here.
        let isAll = channel.range.from == .zero && channel.range.upto > .zero && !isAbove
        let bottom = channel.range.upto == .zero || isAbove ? Int64.max : channel.range.from.value + 1
        let askBefore = min(before ?? Int64.max, bottom)
        return LocalHistory(
            oplogs: complete, islands: all, askBefore: isAll ? nil : askBefore == Int64.max ? 0 : askBefore,
            userID: userID)
    }

    /// Keeps a page of the answer, and gives its oplogs.
    ///
    /// - Parameters:
    ///   - userID: who was bound when it was asked for.
    ///   - list: what the page goes on with.
    func keep(
        _ page: Mss_Device_V1_HistoryPage, bizType: String, before: Int64, of userID: String?, in list: LocalHistory
    ) throws(SyncError) -> [SyncOplog] {
        guard let kind = SyncModel.ChannelKind(wire: page.kind), page.head > 0 else { return [] }
        let (asked, began) = (userID ?? "", list.userID ?? "")
        guard !kind.needsUser || (asked.isSame(as: began) && board.user?.userID.isSame(as: asked) == true) else {
            throw SyncError(.notEligible, "another user has been bound meanwhile")
        }
        let key = LocalChannel.Key(kind: kind, userID: kind.needsUser ? userID ?? "" : "", bizType: bizType)
        return try store.keep(page, of: key, before: before)
    }

    /// Where the channels stand here, of the device and the bound user.
    func localSummary() throws(SyncError) -> [SyncChannelSummary] {
        var summaries: [SyncChannelSummary] = []
        for channel in store.channels(visibleTo: board.user?.userID) {
            summaries.append(
                SyncChannelSummary(
                    bizType: channel.key.bizType, userID: channel.key.userID.isEmpty ? nil : channel.key.userID,
                    last: try store.history(of: channel, before: nil, limit: 1).first,
                    unconfirmed: try store.unconfirmed(in: channel), notReceived: nil))
        }
        return summaries
    }

    /// One channel's summary from what the server and the local store say.
    ///
    /// - Parameter bound: who was bound when the server was asked.
    func merged(
        _ channel: Mss_Device_V1_ChannelSummary, of bound: String?, _ local: SyncChannelSummary?
    ) -> SyncChannelSummary {
        let kind = SyncModel.ChannelKind(wire: channel.kind) ?? .device
        let userID = kind.needsUser ? bound : nil
        // What was found here may be of a user who was bound before.
        let local = local.flatMap { ($0.userID ?? "").isSame(as: userID ?? "") ? $0 : nil }
        var last = local?.last
        if channel.hasLast, channel.last.oplogID > last?.oplogID ?? 0 {
            // Row 0 is no channel's: to confirm it does nothing.
            let key = LocalChannel.Key(kind: kind, userID: userID ?? "", bizType: channel.bizType)
            last = store.oplog(from: channel.last, of: LocalChannel(row: 0, key: key, position: .zero))
        }
        return SyncChannelSummary(
            bizType: channel.bizType, userID: userID, last: last, unconfirmed: local?.unconfirmed ?? 0,
            notReceived: Int(channel.waiting))
    }

    /// Asks the gateway; `.none` when there is no connection or no answer.
    ///
    /// - Returns: the answer, and who is bound to the connection: an answer holds data of nobody else.
    func ask(_ question: ClientRequests.Question) async -> (ClientRequests.Answer, userID: String?) {
        let userID = boundUserID
        let answer = await withCheckedContinuation { continuation in
            ask(question) { continuation.resume(returning: $0) }
        }
        return (answer, userID)
    }

    // MARK: Subscriptions

    /// The app takes a business type no more, or again.
    func setSuspended(_ isSuspended: Bool, bizType: String) throws(SyncError) {
        try store.setSuspended(isSuspended, bizType: bizType)
        subscriptionsChanged()
    }

    /// The app has done with a business type.
    func unsubscribe(_ bizType: String) throws(SyncError) {
        try setSuspended(true, bizType: bizType)
        try store.deleteData(of: bizType, userID: board.user?.userID)
    }

    /// The app wants all of a business type again.
    func beginRecovery(of bizType: String) throws(SyncError) {
        try store.beginRecovery(of: bizType, userID: board.user?.userID)
        recover()
    }

    /// The app was given another push token: the next Connect says so, and there is one soon.
    func setPushToken(_ token: PushToken) throws(SyncError) {
        if try store.setPushToken(token) { connectAnew() }
    }

    /// Changes the key that payloads are stored under.
    func changeStoreKey(to key: [UInt8]?) throws(SyncError) {
        try store.changeCipher(to: try key.map { key throws(SyncError) in try PayloadCipher(key: key) })
    }
}
