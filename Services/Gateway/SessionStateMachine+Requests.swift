import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

// What the device asks for: history and summary. Nothing here moves a position or counts in the window.
extension SessionStateMachine {
    // MARK: History

    /// The device asks for oplogs of a channel.
    mutating func received(
        _ request: Mss_Device_V1_HistoryRequest, in world: SessionSurroundings
    ) -> [SessionAction] {
        let number = request.requestNumber
        guard phase == .open, let identity else { return [.answer(.historyPage(number, .tryAgain))] }
        guard (1...UInt32(Limits.historyPageOplogs)).contains(request.count), request.after >= 0, request.before >= 0
        else { return [.answer(.historyPage(number, .invalid))] }
        let bizType = BizType(request.bizType)
        guard let kind = world.configuration(identity.instanceID, bizType)?.kind else {
            return [.answer(.historyPage(number, .notEligible))]
        }
        let key = ChannelKey(kind: kind, bizType: bizType)
        if let refusal = refusal(of: key, bindNumber: request.bindNumber, to: identity, in: world) {
            return [.answer(.historyPage(number, refusal))]
        }
        guard let cursor = cursors[key] else { return [.answer(.historyPage(number, of: key, to: identity))] }
        let asked = SessionRequests.Request(
            number: number, bindNumber: identity.bindNumber, channels: [(key, cursor.channelID)])
        guard let id = requests.open(asked) else { return [.answer(.historyPage(number, .tryAgain))] }
        return [
            .readHistory(
                HistoryRead(
                    id: id, channelID: cursor.channelID, after: OplogID(request.after),
                    before: OplogID(request.before), count: Int(request.count), isOldestFirst: request.oldestFirst,
                    traits: identity.traits,
                    onlyOwner: isSingleDevice(key, of: identity, in: world) ? identity.deviceID : nil,
                    filter: filters[cursor.channelID]?.current ?? .everything))
        ]
    }

    /// A page of history came back; nil: it will not come.
    mutating func historyRead(
        _ reply: Mss_Bus_V1_HistoryReply?, of id: UInt64, in world: SessionSurroundings
    ) -> [SessionAction] {
        guard phase == .open, let identity, let request = requests[id], let channel = request.channels.first
        else { return [] }
        if let reply, request.bindNumber == identity.bindNumber,
            case .awaitsWord = withholding(channel.key, of: identity, in: world)
        {
            return park(.history(reply, id: id), in: world)
        }
        requests.close(id)
        // Asked again: much may have happened while the page was on its way.
        if let refusal = refusal(of: channel.key, bindNumber: request.bindNumber, to: identity, in: world) {
            return [.answer(.historyPage(request.number, refusal))]
        }
        guard let reply else { return [.answer(.historyPage(request.number, .tryAgain))] }
        guard !reply.notOwner else {
            return [.answer(.historyPage(request.number, .notEligible))] + loseOwnership(in: world)
        }
        let entries = reply.entries.map(Oplog.init(bus:)).filter {
            request.allows($0, of: channel.channelID, for: identity.traits, now: world.databaseTime)
        }
        let page = Mss_Device_V1_Packet.historyPage(request.number, of: channel.key, to: identity) {
            $0.entries = entries.map(\.wire)
            $0.more = reply.more
            $0.next = reply.next
            $0.head = reply.head
        }
        return [.answer(page)]
    }

    // MARK: Summary

    /// The device asks where its channels stand.
    mutating func received(
        _ request: Mss_Device_V1_SummaryRequest, in world: SessionSurroundings
    ) -> [SessionAction] {
        func page(_ refusal: Mss_Device_V1_RequestRefusal) -> [SessionAction] {
            [.answer(.summaryPage(request.requestNumber, refusal, bindNumber: request.bindNumber))]
        }
        guard phase == .open, let identity else { return page(.tryAgain) }
        guard (1...UInt32(Limits.summaryPageChannels)).contains(request.count),
            request.bindNumber == identity.bindNumber
        else { return page(.invalid) }
        guard world.holdsLease, !opensBind else { return page(.tryAgain) }
        let after = request.afterBizType.utf8
        let keys = cursors.keys
            .filter { key in
                // One that was made for its filter has nothing yet.
                cursors[key].map { $0.head > .zero } ?? false
                    && after.lexicographicallyPrecedes(key.bizType.text.utf8)
                    && mayRead(key, of: identity, in: world)
            }
            .sorted {
                if $0.bizType == $1.bizType { return $0.kind.rawValue < $1.kind.rawValue }
                return $0.bizType.text.utf8.lexicographicallyPrecedes($1.bizType.text.utf8)
            }
        // The next page begins behind the last business type of this one, so both channels of one whose push scope was
        // changed are in the same page.
        var count = Int(request.count)
        if count < keys.count, keys[count].bizType == keys[count - 1].bizType { count += 1 }
        let asked = keys.prefix(count).compactMap { key in cursors[key].map { (key, $0) } }
        guard !asked.isEmpty else { return page(.none) }
        let channels = asked.map { SessionRequests.Request.Channel(key: $0.0, channelID: $0.1.channelID) }
        let opened = requests.open(
            SessionRequests.Request(
                number: request.requestNumber, bindNumber: request.bindNumber, channels: channels,
                hasMore: keys.count > asked.count))
        guard let id = opened else { return page(.tryAgain) }
        let places = asked.map { place(of: $0.1, $0.0, for: identity, in: world) }
        return [.readSummary(SummaryRead(id: id, channels: places, traits: identity.traits))]
    }

    private func place(
        of cursor: ChannelCursor, _ key: ChannelKey, for identity: SessionIdentity, in world: SessionSurroundings
    ) -> SummaryRead.Channel {
        SummaryRead.Channel(
            channelID: cursor.channelID, receiver: receiver(key, of: identity, in: world), stored: cursor.stored,
            onlyOwner: isSingleDevice(key, of: identity, in: world) ? identity.deviceID : nil,
            filter: filters[cursor.channelID]?.current ?? .everything)
    }

    /// Where the channels stand came back; nil: it will not come.
    mutating func summaryRead(
        _ reply: Mss_Bus_V1_SummaryReply?, of id: UInt64, in world: SessionSurroundings
    ) -> [SessionAction] {
        guard phase == .open, let identity, let request = requests[id] else { return [] }
        let awaitsWord = request.channels.contains {
            if case .awaitsWord = withholding($0.key, of: identity, in: world) { true } else { false }
        }
        if let reply, request.bindNumber == identity.bindNumber, awaitsWord {
            return park(.summary(reply, id: id), in: world)
        }
        requests.close(id)
        func page(_ refusal: Mss_Device_V1_RequestRefusal) -> [SessionAction] {
            [.answer(.summaryPage(request.number, refusal, bindNumber: request.bindNumber))]
        }
        guard request.bindNumber == identity.bindNumber else { return page(.invalid) }
        guard let reply, reply.channels.count == request.channels.count else { return page(.tryAgain) }
        var summaries: [Mss_Device_V1_ChannelSummary] = []
        for (channel, standing) in zip(request.channels, reply.channels) {
            if standing.notOwner { return page(.tryAgain) + loseOwnership(in: world) }
            let last = standing.hasLast ? Oplog(bus: standing.last) : nil
            // What is not as it was when it was asked for makes the page wrong: the device asks for it anew.
            guard withholding(channel.key, of: identity, in: world) == nil,
                last.map({
                    request.allows($0, of: channel.channelID, for: identity.traits, now: world.databaseTime)
                }) ?? true
            else { return page(.tryAgain) }
            summaries.append(
                .with {
                    $0.kind = channel.key.kind.wire
                    $0.bizType = channel.key.bizType.text
                    $0.head = standing.head
                    $0.syncPoint = standing.syncPoint
                    if let last { $0.last = last.wire }
                    $0.waiting = standing.waiting
                })
        }
        return [
            .answer(
                .summaryPage(
                    request.number, bindNumber: request.bindNumber, channels: summaries, more: request.hasMore))
        ]
    }

    // MARK: Rules

    /// Why a question about a channel is not answered with data now; nil: it is.
    private func refusal(
        of key: ChannelKey, bindNumber: UInt32, to identity: SessionIdentity, in world: SessionSurroundings
    ) -> Mss_Device_V1_RequestRefusal? {
        if key.kind.needsUser {
            if bindNumber != identity.bindNumber { return .invalid }
            if identity.userID == nil { return .notEligible }
            // Before the bind is registered nobody knows the user's channels.
            if opensBind { return .tryAgain }
        }
        switch withholding(key, of: identity, in: world) {
        case nil, .awaitsWord: return nil
        case .noLease, .awaitsFilter: return .tryAgain
        case .notEligible: return .notEligible
        }
    }
}
