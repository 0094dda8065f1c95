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
            of: request.channelID, after: OplogID(request.after),
            before: request.before == 0 ? OplogID(.max) : OplogID(request.before), oldestFirst: request.oldestFirst,
            count: Int(request.count), for: device, ResolvedFilter(text: request.filter), on: connection)
        return .with {
            $0.entries = page.entries.map(\.bus)
            $0.more = page.scan.isCutShort
            $0.next = page.scan.isCutShort ? page.scan.position?.value ?? 0 : 0
            $0.head = head.value
        }
    }

    /// The state of channels, in the order of the request.
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
        let standings = try connection.run(HistoryStore.standings(of: places), within: Self.limit)
        var reply = Mss_Bus_V1_SummaryReply()
        for (channel, standing) in zip(channels, standings) {
            guard !standing.isForAnother else {
                reply.channels.append(.with { $0.notOwner = true })
                continue
            }
            let newest = try page(
                of: channel.channelID, after: .zero, before: OplogID(.max), oldestFirst: false, count: 1, for: device,
                ResolvedFilter(text: channel.filter), on: connection
            ).entries.first
            let waiting = standing.waiting.filter { $0.key.exclusion(of: device) == nil }.values.reduce(0, +)
            reply.channels.append(
                .with {
                    $0.head = standing.head.value
                    $0.syncPoint = standing.syncPoint.value
                    if let newest { $0.last = newest.bus }
                    $0.waiting = UInt32(waiting)
                })
        }
        return reply
    }

    /// The first oplogs of a range for a device.
    private func page(
        of channelID: Int64, after: OplogID, before: OplogID, oldestFirst: Bool, count: Int, for device: DeviceTraits,
        _ filter: ResolvedFilter?, on connection: PostgresConnection
    ) throws(PostgresError) -> (entries: [Oplog], scan: HistoryScan) {
        let store = stores.store(ofID: channelID)
        var scan = HistoryScan(count: count, device: device, filter: filter ?? .everything)
        while scan.nextRows > 0 {
            let rows = HistoryStore.candidates(
                of: channelID, after: oldestFirst ? scan.position ?? after : after,
                before: oldestFirst ? before : scan.position ?? before, oldestFirst: oldestFirst, limit: scan.nextRows,
                in: store)
            scan.examine(try connection.run(rows, within: Self.limit))
        }
        guard !scan.chosen.isEmpty else { return ([], scan) }
        let oplogs = HistoryStore.oplogs(of: channelID, ids: scan.chosen, in: store)
        return (try connection.run(oplogs, within: Self.limit), scan)
    }
}
