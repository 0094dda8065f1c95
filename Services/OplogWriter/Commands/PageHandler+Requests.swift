import BusMessages
import PostgreSQL
import SwiftProtobuf
import SyncModel
import SyncStore

// Requests of devices: history and summary.
extension PageHandler {
    private static let limit = Duration.seconds(10)

    /// A page of history.
    func history(
        _ request: Mss_Bus_V1_ReadHistory, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_HistoryReply {
        let head = OplogStore.head(
            of: request.channelID, readBy: DeviceID(nonempty: request.ownerDeviceID),
            in: stores.store(ofID: request.channelID))
        guard let head = try connection.run(head, within: Self.limit) else { return .with { $0.notOwner = true } }
        let device = DeviceTraits(
            operatingSystem: SyncModel.OperatingSystem(bus: request.operatingSystem), appVersion: request.appVersion,
            slot: DeviceSlot(number: Int(request.slot)))
        let page = try page(
            of: request.channelID, request.conversation, after: OplogID(request.after),
            before: request.before == 0 ? OplogID(.max) : OplogID(request.before), oldestFirst: request.oldestFirst,
            count: Int(request.count), for: device, ResolvedFilter(text: request.filter), on: connection)
        return .with {
            $0.entries = page.entries.map(\.bus)
            $0.more = page.scan.isCutShort
            $0.next = page.scan.isCutShort ? page.scan.position?.value ?? 0 : 0
            $0.head = head.value
        }
    }

    /// The state of channels, in the order of the request, or of conversations of one channel.
    func summary(
        _ request: Mss_Bus_V1_ReadSummary, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_SummaryReply {
        let device = DeviceTraits(
            operatingSystem: SyncModel.OperatingSystem(bus: request.operatingSystem), appVersion: request.appVersion,
            slot: DeviceSlot(number: Int(request.slot)))
        let channels = request.channels.prefix(Limits.summaryPageChannels + 1)
        let places = channels.map { channel in
            HistoryStore.Place(
                channelID: channel.channelID, deviceID: DeviceID(nonempty: channel.deviceID),
                storeID: channel.storeID.isEmpty ? nil : StoreID(channel.storeID),
                userID: channel.userID.isEmpty ? nil : UserID(channel.userID), stored: OplogID(channel.stored),
                onlyOwner: DeviceID(nonempty: channel.ownerDeviceID))
        }
        let states = try connection.run(HistoryStore.states(of: places), within: Self.limit)
        if request.hasConversations {
            guard let channel = channels.first, let state = states.first else { return Mss_Bus_V1_SummaryReply() }
            return try conversations(request.conversations, of: channel, state, for: device, on: connection)
        }
        var reply = Mss_Bus_V1_SummaryReply()
        for (channel, state) in zip(channels, states) {
            guard !state.isForAnother else {
                reply.channels.append(.with { $0.notOwner = true })
                continue
            }
            let newest = try page(
                of: channel.channelID, after: .zero, before: OplogID(.max), oldestFirst: false, count: 1, for: device,
                ResolvedFilter(text: channel.filter), on: connection
            ).entries.first
            reply.channels.append(
                .with {
                    $0.head = state.head.value
                    $0.syncPoint = state.syncPoint.value
                    if let newest { $0.last = newest.bus }
                    $0.waiting = Self.waiting(state.waiting, for: device)
                })
        }
        return reply
    }

    /// The state of the next conversations of a channel. Those without a valid oplog for the device are left out, so
    /// the reply may have no rows and still have more.
    private func conversations(
        _ request: Mss_Bus_V1_SummaryConversations, of channel: Mss_Bus_V1_SummaryChannel,
        _ state: HistoryStore.ReceiverState, for device: DeviceTraits, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_SummaryReply {
        guard !state.isForAnother else { return .with { $0.channels = [.with { $0.notOwner = true }] } }
        let count = min(max(Int(request.count), 1), Limits.summaryPageChannels)
        // One more shows whether others follow.
        let found = try connection.run(
            HistoryStore.conversations(
                of: channel.channelID, after: request.after, above: state.syncPoint, limit: count + 1,
                in: stores.store(ofID: channel.channelID)), within: Self.limit)
        var reply = Mss_Bus_V1_SummaryReply()
        for conversation in found.prefix(count) {
            let newest = try page(
                of: channel.channelID, conversation.name, after: .zero, before: OplogID(.max), oldestFirst: false,
                count: 1, for: device, ResolvedFilter(text: channel.filter), on: connection
            ).entries.first
            guard let newest else { continue }
            reply.channels.append(
                .with {
                    $0.head = state.head.value
                    $0.syncPoint = state.syncPoint.value
                    $0.last = newest.bus
                    $0.waiting = Self.waiting(conversation.waiting, for: device)
                    $0.conversation = conversation.name
                })
        }
        reply.more = found.count > count
        reply.next = reply.more ? found[count - 1].name : ""
        return reply
    }

    private static func waiting(_ counts: [Targeting: Int], for device: DeviceTraits) -> UInt32 {
        UInt32(counts.filter { $0.key.exclusion(of: device) == nil }.values.reduce(0, +))
    }

    /// The first oplogs of a range for a device.
    private func page(
        of channelID: Int64, _ conversation: String = "", after: OplogID, before: OplogID, oldestFirst: Bool,
        count: Int, for device: DeviceTraits,
        _ filter: ResolvedFilter?, on connection: PostgresConnection
    ) throws(PostgresError) -> (entries: [Oplog], scan: HistoryScan) {
        let store = stores.store(ofID: channelID)
        var scan = HistoryScan(count: count, device: device, filter: filter ?? .everything)
        while scan.nextRows > 0 {
            let rows = HistoryStore.candidates(
                of: channelID, conversation, after: oldestFirst ? scan.position ?? after : after,
                before: oldestFirst ? before : scan.position ?? before, oldestFirst: oldestFirst, limit: scan.nextRows,
                in: store)
            scan.examine(try connection.run(rows, within: Self.limit))
        }
        guard !scan.chosen.isEmpty else { return ([], scan) }
        let oplogs = HistoryStore.oplogs(of: channelID, ids: scan.chosen, in: store)
        return (try connection.run(oplogs, within: Self.limit), scan)
    }
}
