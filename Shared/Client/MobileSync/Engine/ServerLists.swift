import DeviceProtocol
import SwiftProtobuf

/// Histories and summaries: the local part, and the rest from the gateway.
struct ServerLists {
    let engine: ClientEngine

    /// Returns the newest oplogs of a Sync ID below an id (`SyncClient.history`).
    func history(of bizType: String, before: Int64?, count: Int) async throws(SyncError) -> SyncHistory {
        let local = try await engine.localHistory(of: bizType, before: before, count: count)
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
            oplogs += try await engine.storeHistory(page, bizType: bizType, before: before, of: userID, in: local)
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
            guard page.more, last != after else { break }
        }
        return summaries.values.sorted { $0.bizType.utf8.lexicographicallyPrecedes($1.bizType.utf8) }
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
