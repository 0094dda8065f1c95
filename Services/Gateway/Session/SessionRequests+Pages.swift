import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

// Requests for history and summary. They move no position and do not count in the send window.
extension SessionRequests {
    /// The effect of the store's reply to a request.
    enum Outcome {
        case answered([SessionAction])
        /// The data waits for a verdict.
        case awaitsVerdict(VerdictQueue.Parked.Read)
        /// The device is answered. The store named another owner.
        case notOwner([SessionAction])
    }

    // MARK: History

    /// Processes a request for history.
    mutating func readHistory(
        _ request: Mss_Device_V1_HistoryRequest, of window: DeliveryWindow, by eligibility: Eligibility,
        in context: SessionContext
    ) -> [SessionAction] {
        let (number, identity) = (request.requestNumber, eligibility.identity)
        guard eligibility.registration.isOpen else { return [.answer(.historyPage(number, .tryAgain))] }
        guard (1...UInt32(Limits.historyPageOplogs)).contains(request.count), request.after >= 0, request.before >= 0,
            Self.isConversation(request.conversation)
        else { return [.answer(.historyPage(number, .invalid))] }
        let key: ChannelKey
        let cursor: ChannelCursor
        switch channel(request.bizType, bindNumber: request.bindNumber, in: window, by: eligibility, in: context) {
        case .refused(let refusal): return [.answer(.historyPage(number, refusal))]
        case .empty(let key): return [.answer(.historyPage(number, of: key, to: identity))]
        case .read(let found, let place): (key, cursor) = (found, place)
        }
        let asked = Request(
            number: number, bindNumber: identity.bindNumber, channels: [(key, cursor.channelID)])
        guard let id = open(asked) else { return [.answer(.historyPage(number, .tryAgain))] }
        return [
            .readHistory(
                HistoryRead(
                    id: id, channelID: cursor.channelID, after: OplogID(request.after),
                    before: OplogID(request.before), count: Int(request.count), isOldestFirst: request.oldestFirst,
                    traits: identity.traits,
                    onlyOwner: eligibility.onlyOwner(key, in: context),
                    filter: eligibility.filters[cursor.channelID]?.current ?? .everything,
                    conversation: request.conversation))
        ]
    }

    /// Processes a page of history; nil: no reply.
    mutating func answerHistory(
        _ reply: Mss_Bus_V1_HistoryReply?, of id: UInt64, in window: DeliveryWindow, by eligibility: Eligibility,
        in context: SessionContext
    ) -> Outcome {
        let identity = eligibility.identity
        guard let request = self[id], let channel = request.channels.first else { return .answered([]) }
        if let reply, request.bindNumber == identity.bindNumber,
            case .awaitsVerdict = window.withholding(channel.key, by: eligibility, in: context)
        {
            return .awaitsVerdict(.history(reply, id: id))
        }
        close(id)
        // Checked again: the rules may have changed while the page was in flight.
        if let refusal = refusal(
            of: channel.key, bindNumber: request.bindNumber, in: window, by: eligibility, in: context)
        {
            return .answered([.answer(.historyPage(request.number, refusal))])
        }
        guard let reply else { return .answered([.answer(.historyPage(request.number, .tryAgain))]) }
        guard !reply.notOwner else { return .notOwner([.answer(.historyPage(request.number, .notEligible))]) }
        let entries = reply.entries.map(Oplog.init(bus:)).filter {
            request.allows($0, of: channel.channelID, for: identity.traits, now: context.databaseTime)
        }
        let page = Mss_Device_V1_Packet.historyPage(request.number, of: channel.key, to: identity) {
            $0.entries = entries.map(\.wire)
            $0.more = reply.more
            $0.next = reply.next
            $0.head = reply.head
        }
        return .answered([.answer(page)])
    }

    // MARK: Summary

    /// Processes a request for a summary.
    mutating func readSummary(
        _ request: Mss_Device_V1_SummaryRequest, of window: DeliveryWindow, by eligibility: Eligibility,
        in context: SessionContext
    ) -> [SessionAction] {
        let (identity, registration) = (eligibility.identity, eligibility.registration)
        func page(_ refusal: Mss_Device_V1_RequestRefusal) -> [SessionAction] {
            [.answer(.summaryPage(request.requestNumber, refusal, bindNumber: request.bindNumber))]
        }
        guard registration.isOpen else { return page(.tryAgain) }
        guard (1...UInt32(Limits.summaryPageChannels)).contains(request.count),
            request.bindNumber == identity.bindNumber
        else { return page(.invalid) }
        guard context.holdsLease, !registration.opensBind else { return page(.tryAgain) }
        if !request.conversationsOf.isEmpty {
            return readConversations(request, of: window, by: eligibility, in: context)
        }
        let after = request.afterBizType.utf8
        let keys = window.cursors.keys
            .filter { key in
                // A channel that was made only for its filter has no oplogs yet.
                window.cursors[key].map { $0.head > .zero } ?? false
                    && after.lexicographicallyPrecedes(key.bizType.text.utf8)
                    && eligibility.mayRead(key, channelID: window.cursors[key]?.channelID, in: context)
            }
            .sorted {
                if $0.bizType == $1.bizType { return $0.kind.rawValue < $1.kind.rawValue }
                return $0.bizType.text.utf8.lexicographicallyPrecedes($1.bizType.text.utf8)
            }
        // The next page begins after the last Sync ID of this one. So both channels of a Sync ID with a changed push
        // scope must be on the same page.
        var count = Int(request.count)
        if count < keys.count, keys[count].bizType == keys[count - 1].bizType { count += 1 }
        let asked = keys.prefix(count).compactMap { key in window.cursors[key].map { (key, $0) } }
        guard !asked.isEmpty else { return page(.none) }
        let channels = asked.map { Request.Channel(key: $0.0, channelID: $0.1.channelID) }
        let opened = open(
            Request(
                number: request.requestNumber, bindNumber: request.bindNumber, channels: channels,
                hasMore: keys.count > asked.count))
        guard let id = opened else { return page(.tryAgain) }
        let places = asked.map { place(of: $0.1, $0.0, by: eligibility, in: context) }
        return [.readSummary(SummaryRead(id: id, channels: places, traits: identity.traits))]
    }

    private mutating func readConversations(
        _ request: Mss_Device_V1_SummaryRequest, of window: DeliveryWindow, by eligibility: Eligibility,
        in context: SessionContext
    ) -> [SessionAction] {
        let (number, identity) = (request.requestNumber, eligibility.identity)
        func page(_ refusal: Mss_Device_V1_RequestRefusal) -> [SessionAction] {
            [.answer(.summaryPage(number, refusal, bindNumber: request.bindNumber))]
        }
        guard Self.isConversation(request.afterConversation) else { return page(.invalid) }
        let key: ChannelKey
        let cursor: ChannelCursor
        switch channel(
            request.conversationsOf, bindNumber: request.bindNumber, in: window, by: eligibility, in: context)
        {
        case .refused(let refusal): return page(refusal)
        case .empty: return page(.none)
        case .read(let found, let place): (key, cursor) = (found, place)
        }
        let asked = Request(
            number: number, bindNumber: request.bindNumber, channels: [(key, cursor.channelID)],
            isOfConversations: true)
        guard let id = open(asked) else { return page(.tryAgain) }
        return [
            .readSummary(
                SummaryRead(
                    id: id, channels: [place(of: cursor, key, by: eligibility, in: context)], traits: identity.traits,
                    conversations: SummaryRead.Conversations(
                        after: request.afterConversation, count: Int(request.count))))
        ]
    }

    private static func isConversation(_ name: String) -> Bool {
        name.utf16.count <= Limits.conversationUnits && !name.utf8.contains(0)
    }

    private func place(
        of cursor: ChannelCursor, _ key: ChannelKey, by eligibility: Eligibility, in context: SessionContext
    ) -> SummaryRead.Channel {
        SummaryRead.Channel(
            channelID: cursor.channelID, receiver: eligibility.receiver(key, in: context), stored: cursor.stored,
            onlyOwner: eligibility.onlyOwner(key, in: context),
            filter: eligibility.filters[cursor.channelID]?.current ?? .everything)
    }

    /// Processes the summary of channels; nil: no reply.
    mutating func answerSummary(
        _ reply: Mss_Bus_V1_SummaryReply?, of id: UInt64, in window: DeliveryWindow, by eligibility: Eligibility,
        in context: SessionContext
    ) -> Outcome {
        let identity = eligibility.identity
        guard let request = self[id] else { return .answered([]) }
        let awaitsVerdict = request.channels.contains {
            if case .awaitsVerdict = window.withholding($0.key, by: eligibility, in: context) { true } else { false }
        }
        if let reply, request.bindNumber == identity.bindNumber, awaitsVerdict {
            return .awaitsVerdict(.summary(reply, id: id))
        }
        close(id)
        func refused(_ refusal: Mss_Device_V1_RequestRefusal) -> [SessionAction] {
            [.answer(.summaryPage(request.number, refusal, bindNumber: request.bindNumber))]
        }
        guard request.bindNumber == identity.bindNumber else { return .answered(refused(.invalid)) }
        guard let reply, request.isOfConversations || reply.channels.count == request.channels.count else {
            return .answered(refused(.tryAgain))
        }
        // A change since the request makes the page wrong. The device requests it again.
        let isWithheld = request.channels.contains { window.withholding($0.key, by: eligibility, in: context) != nil }
        guard !isWithheld else { return .answered(refused(.tryAgain)) }
        var summaries: [Mss_Device_V1_ChannelSummary] = []
        for (place, standing) in reply.channels.enumerated() {
            let channel = request.channels[request.isOfConversations ? 0 : place]
            if standing.notOwner { return .notOwner(refused(.tryAgain)) }
            let last = standing.hasLast ? Oplog(bus: standing.last) : nil
            let isAllowed = last.map {
                request.allows($0, of: channel.channelID, for: identity.traits, now: context.databaseTime)
            }
            guard isAllowed ?? true else { return .answered(refused(.tryAgain)) }
            summaries.append(
                .with {
                    $0.kind = channel.key.kind.wire
                    $0.bizType = channel.key.bizType.text
                    $0.head = standing.head
                    $0.syncPoint = standing.syncPoint
                    if let last { $0.last = last.wire }
                    $0.waiting = standing.waiting
                    $0.conversation = standing.conversation
                })
        }
        return .answered([
            .answer(
                .summaryPage(
                    request.number, bindNumber: request.bindNumber, channels: summaries,
                    more: request.hasMore || reply.more, nextConversation: reply.next))
        ])
    }

    // MARK: Rules

    /// The channel that a request names by its Sync ID.
    private enum Named {
        case refused(Mss_Device_V1_RequestRefusal)
        /// It has no oplogs yet.
        case empty(ChannelKey)
        case read(ChannelKey, ChannelCursor)
    }

    private func channel(
        _ name: String, bindNumber: UInt32, in window: DeliveryWindow, by eligibility: Eligibility,
        in context: SessionContext
    ) -> Named {
        let bizType = BizType(name)
        guard let kind = context.configuration(eligibility.identity.instanceID, bizType)?.kind else {
            return .refused(.notEligible)
        }
        let key = ChannelKey(kind: kind, bizType: bizType)
        if let refusal = refusal(of: key, bindNumber: bindNumber, in: window, by: eligibility, in: context) {
            return .refused(refusal)
        }
        return window.cursors[key].map { .read(key, $0) } ?? .empty(key)
    }

    /// Why a request about a channel is refused now; nil: it is answered with data.
    private func refusal(
        of key: ChannelKey, bindNumber: UInt32, in window: DeliveryWindow, by eligibility: Eligibility,
        in context: SessionContext
    ) -> Mss_Device_V1_RequestRefusal? {
        let identity = eligibility.identity
        if key.kind.needsUser {
            if bindNumber != identity.bindNumber { return .invalid }
            if identity.userID == nil { return .notEligible }
            // Before the bind is registered, the user's channels are unknown.
            if eligibility.registration.opensBind { return .tryAgain }
        }
        switch window.withholding(key, by: eligibility, in: context) {
        case nil, .awaitsVerdict: return nil
        case .noLease, .awaitsFilter: return .tryAgain
        case .notEligible: return .notEligible
        }
    }
}
