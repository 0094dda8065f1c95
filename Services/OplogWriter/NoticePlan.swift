import BusMessages
import SwiftProtobuf
import SyncModel
import SyncStore

/// Who is told of a group of appends, and which pushes found an eligible device; pure.
struct NoticePlan {
    /// Per gateway the notices in channel order; one per channel, with all that the group added to it.
    private(set) var notices: [(gatewayID: String, notice: Mss_Bus_V1_GatewayNotice)] = []
    /// Per row: handed towards at least one eligible device (spec H4).
    private(set) var isOnline: [Bool]

    init(
        rows: [AppendWork.Row], appended: [OplogStore.Appended], sessions: [[DeviceSessionStore.Presence]]
    ) {
        isOnline = zip(rows, sessions).map { row, sessions in
            sessions.contains { Self.isEligible($0, for: row) }
        }
        var order: [Int64] = []
        var rowsOfChannel: [Int64: [Int]] = [:]
        for (index, answer) in appended.enumerated() {
            if rowsOfChannel[answer.channelID, default: []].isEmpty { order.append(answer.channelID) }
            rowsOfChannel[answer.channelID, default: []].append(index)
        }
        for channelID in order {
            let indices = rowsOfChannel[channelID] ?? []
            let isSingleDevice = indices.contains { rows[$0].command.singleDevice }
            let told = indices.flatMap { sessions[$0] }.filter { !isSingleDevice || $0.isOwner }
            let gateways = Set(told.map(\.gatewayID))
            guard !gateways.isEmpty else { continue }
            var notice = Self.notice(channelID, indices.map { (rows[$0], appended[$0]) })
            if isSingleDevice { notice.oplogs.ownerDeviceID = told[0].deviceID.text }
            for gatewayID in gateways.sorted() { notices.append((gatewayID, notice)) }
        }
    }

    private static func isEligible(_ session: DeviceSessionStore.Presence, for row: AppendWork.Row) -> Bool {
        if row.command.singleDevice, !session.isOwner { return false }
        if row.command.checksSession, !session.hasValidVerdict { return false }
        return row.append.oplog.targeting.exclusion(of: session.traits) == nil
    }

    /// The channel's step from its head before the group to its newest id. A group of duplicates alone says where the
    /// head stands, which wakes a gateway that missed the first notice.
    private static func notice(
        _ channelID: Int64, _ members: [(row: AppendWork.Row, appended: OplogStore.Appended)]
    ) -> Mss_Bus_V1_GatewayNotice {
        let headBefore = members[0].appended.headBefore
        let new = members.filter { !$0.appended.isDuplicate }
        return .with {
            $0.oplogs.channelID = channelID
            $0.oplogs.target = members[0].row.command.target
            $0.oplogs.bizType = members[0].row.command.bizType
            $0.oplogs.after = headBefore.value
            $0.oplogs.upto = (new.last?.appended.oplogID ?? headBefore).value
            $0.oplogs.entries = new.map { member in
                var oplog = member.row.command.oplog
                oplog.id = member.appended.oplogID.value
                oplog.validUntilMs = member.appended.validUntil.milliseconds
                oplog.createdAtMs = member.appended.createdAt.milliseconds
                return oplog
            }
        }
    }
}
