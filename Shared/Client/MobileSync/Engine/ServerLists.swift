import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// Histories and summaries: the local part, and the rest from the gateway.
struct ServerLists {
    let engine: ClientEngine

    /// Returns the newest oplogs of a Sync ID below an id (`SyncClient.history`).
    func history(
        of bizType: String, _ conversation: String?, before: Int64?, count: Int
    ) async throws(SyncError) -> SyncHistory {
        let local = try await engine.localHistory(of: bizType, conversation, before: before, count: count)
        if local.oplogs.count >= count { return SyncHistory(oplogs: local.oplogs, hasMore: true, isComplete: true) }
        guard var next = local.requestBefore else {
            return SyncHistory(oplogs: local.oplogs, hasMore: false, isComplete: true)
        }
        var oplogs = local.oplogs
        var hasMore = true
        while hasMore, oplogs.count < count {
            let (limit, before) = (UInt32(min(count - oplogs.count, 100)), next)
            let (answer, userID) = await ask(
                .history(
                    .with {
                        $0.bizType = bizType
                        $0.conversation = conversation ?? ""
                        $0.before = before
                        $0.count = limit
                    }))
            guard case .history(let page) = answer, page.refusal != .tryAgain else {
                let found = oplogs.count > local.allStored.count ? oplogs : local.allStored
                return SyncHistory(oplogs: found, hasMore: true, isComplete: false)
            }
            guard page.refusal == .none else {
                throw SyncError(.notEligible, "the gateway does not give \(bizType) to this device and user now")
            }
            oplogs += try await engine.storeHistory(
                page, bizType: bizType, conversation, before: before, of: userID, in: local)
            (hasMore, next) = (page.more, page.next)
        }
        return SyncHistory(oplogs: oplogs, hasMore: hasMore, isComplete: true)
    }

    /// Returns the state of each channel (`SyncClient.channelSummaries`).
    func summaries() async throws(SyncError) -> [SyncChannelSummary] {
        var summaries = Dictionary(
            try await engine.localSummary().map { ($0.bizType, $0) }, uniquingKeysWith: { first, _ in first })
        var last = ""
        while true {
            let after = last
            let (answer, userID) = await ask(
                .summary(
                    .with {
                        $0.afterBizType = after
                        $0.count = 16
                    }))
            guard case .summary(let page) = answer, page.refusal == .none else { break }
            for channel in page.channels {
                let local = summaries[channel.bizType]
                summaries[channel.bizType] = await engine.merged(channel, of: userID, local)
                last = channel.bizType
            }
            // Pages that do not go on in the order of the names would never end.
            guard page.more, after.precedes(last) else { break }
        }
        return summaries.values.sorted { $0.bizType.utf8.lexicographicallyPrecedes($1.bizType.utf8) }
    }

    /// Returns the conversations of a Sync ID (`SyncClient.conversations`).
    func conversations(of bizType: String) async throws(SyncError) -> [SyncConversation] {
        var (found, userID) = try await engine.localConversations(of: bizType)
        var next: String? = ""
        while let after = next {
            let (answer, asked) = await ask(
                .summary(
                    .with {
                        $0.conversationsOf = bizType
                        $0.afterConversation = after
                        $0.count = 16
                    }))
            guard await engine.isBound(userID), asked.map({ $0.isSame(as: userID ?? "") }) ?? true else {
                throw SyncError(.notEligible, "another user has been bound meanwhile")
            }
            guard case .summary(let page) = answer, page.refusal == .none else { return Self.sorted(found) }
            for channel in page.channels {
                let name = ConversationName(channel.conversation)
                found[name] = await engine.merged(channel, of: asked, found[name])
            }
            guard !page.more || after.precedes(page.nextConversation) else { return Self.sorted(found) }
            next = page.more ? page.nextConversation : nil
        }
        return Self.sorted(found.mapValues(\.withAnswer))
    }

    /// The newest first.
    private static func sorted(_ found: [ConversationName: SyncConversation]) -> [SyncConversation] {
        found.values.sorted { $0.last.oplogID > $1.last.oplogID }
    }

    /// Asks the gateway, at most five times while the gateway is overloaded. Returns the answer with the user that was
    /// bound when the request was sent.
    private func ask(_ request: ClientRequests.Request) async -> (ClientRequests.Answer, userID: String?) {
        for attempt in 1...5 {
            let (answer, userID) = await engine.ask(request)
            guard answer.refusal == .tryAgain else { return (answer, userID) }
            // The gateway needs time; there is no event to wait for.
            try? await Task.sleep(for: .milliseconds(200 * attempt))
        }
        return (.none, nil)
    }
}
