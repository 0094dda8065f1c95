import DeviceProtocol
import SwiftProtobuf

/// Data for screens: what was, and where the channels stand.
extension SyncClient {
    /// The newest oplogs of a Sync ID below an id, newest first: from the local store as far as that goes, then from
    /// the server as far as its retention goes. Nothing of it is handed out or confirmed by being read.
    ///
    /// - Parameters:
    ///   - before: nil: from the newest; otherwise the last id of the piece before.
    ///   - count: 1 to 1,000.
    /// - Throws: `SyncError.notEligible` when the server does not give this data to this device and user now, `store`.
    public func history(
        of bizType: String, before: Int64? = nil, count: Int = 50
    ) async throws(SyncError) -> SyncHistory {
        let count = min(max(count, 1), 1_000)
        let local = try await engine.localHistory(of: bizType, before: before, count: count)
        if local.oplogs.count >= count { return SyncHistory(oplogs: local.oplogs, hasMore: true, isComplete: true) }
        guard var next = local.askBefore else {
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
                let found = oplogs.count > local.islands.count ? oplogs : local.islands
                return SyncHistory(oplogs: found, hasMore: true, isComplete: false)
            }
            guard page.refusal == .none else {
                throw SyncError(.notEligible, "the gateway does not give \(bizType) to this device and user now")
            }
            oplogs += try await engine.keep(page, bizType: bizType, before: before, of: userID, in: local)
            (hasMore, next) = (page.more, page.next)
        }
        return SyncHistory(oplogs: oplogs, hasMore: hasMore, isComplete: true)
    }

    /// Where the channels of the device and the bound user stand, here and on the server; by Sync ID.
    ///
    /// - Throws: `SyncError.store`.
    public func channelSummaries() async throws(SyncError) -> [SyncChannelSummary] {
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

    /// Asks the gateway; when it has too much to do, again a few times. Gives the bound user too, whose data it is.
    private func ask(_ question: ClientRequests.Question) async -> (ClientRequests.Answer, userID: String?) {
        for attempt in 1...5 {
            let (answer, userID) = await engine.ask(question)
            guard answer.refusal == .tryAgain else { return (answer, userID) }
            try? await Task.sleep(for: .milliseconds(200 * attempt))
        }
        return (.none, nil)
    }
}
