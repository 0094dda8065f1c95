import BusMessages
import SwiftProtobuf
import SyncModel
import SyncStore

/// Computes the notices of a group of appends, the gateways that receive them, and the pushes that have an eligible
/// session; pure.
enum NoticePlan {
    /// One stored push, and the sessions of its target.
    struct Stored {
        let row: AppendHandler.Row
        let appended: OplogStore.Appended
        let sessions: [DeviceSessionStore.Presence]

        /// Identifies the oplog. A repeated push has the key of the first call.
        struct Key: Hashable {
            let channelID: Int64
            let oplogID: OplogID
        }

        var key: Key { Key(channelID: appended.channelID, oplogID: appended.oplogID) }

        /// The payload is not stored and no outcome is recorded yet, so only the gateways can tell the outcome. A
        /// repeated push is sent again under the id of the first call, until an outcome is recorded.
        var awaitsOutcome: Bool { appended.awaitsOutcome }

        /// Whether its validity had ended when it was stored, by the database's clock.
        var hasEnded: Bool { appended.validUntil <= appended.createdAt }

        /// Whether at least one session is eligible for the push (H4).
        var isOnline: Bool {
            !hasEnded
                && sessions.contains { session in
                    appended.rules.obstacle(
                        isSuspended: session.isSuspended, isOwner: session.isOwner,
                        hasValidVerdict: session.hasValidVerdict) == nil
                        && row.append.oplog.targeting.exclusion(of: session.traits) == nil
                }
        }

        /// The sessions that are notified; in a single-device channel only the owner's. Each gateway checks all rules
        /// again.
        var receivers: [DeviceSessionStore.Presence] {
            appended.rules.isSingleDevice ? sessions.filter(\.isOwner) : sessions
        }
    }

    /// The notice of one channel, and the gateways that receive it.
    struct ChannelStep {
        let notice: Mss_Bus_V1_GatewayNotice
        let gatewayIDs: [String]
        /// The non-persistent pushes that are answered after the replies of the gateways. Pushes with the same id share
        /// one entry of the notice, that of the first.
        let awaitingOutcome: [Stored]
    }

    /// The notices of the group in channel order: one for each channel with at least one gateway to notify. A notice
    /// contains all oplogs that the group added to its channel.
    ///
    /// - Parameter everyGateway: the receivers of an immediate global push.
    static func steps(of pushes: [Stored], everyGateway: [String]) -> [ChannelStep] {
        var order: [Int64] = []
        var channels: [Int64: [Stored]] = [:]
        for push in pushes {
            if channels[push.appended.channelID] == nil { order.append(push.appended.channelID) }
            channels[push.appended.channelID, default: []].append(push)
        }
        return order.compactMap { channelID in
            let members = channels[channelID] ?? []
            let receivers = members.flatMap(\.receivers)
            let isForAll = members.contains { $0.appended.isImmediate && !$0.appended.isDuplicate }
            let gatewayIDs = isForAll ? everyGateway : Set(receivers.map(\.gatewayID)).sorted()
            guard !gatewayIDs.isEmpty else { return nil }
            var notice = notice(channelID, members)
            let online = Set(entries(of: members).filter(\.isOnline).map(\.key))
            if members.contains(where: \.appended.rules.isSingleDevice) {
                notice.oplogs.ownerDeviceID = receivers.first(where: \.isOwner)?.deviceID.text ?? ""
            }
            return ChannelStep(
                notice: notice, gatewayIDs: gatewayIDs,
                awaitingOutcome: members.filter { $0.awaitsOutcome && online.contains($0.key) })
        }
    }

    /// The pushes in the notice, in id order, each once.
    private static func entries(of members: [Stored]) -> [Stored] {
        var ids: Set<OplogID> = []
        return members.filter {
            ($0.awaitsOutcome || !$0.appended.isDuplicate) && ids.insert($0.appended.oplogID).inserted
        }.sorted { $0.appended.oplogID < $1.appended.oplogID }
    }

    /// The notice for the ids from the head before the group to the head after it. A notice of a group with duplicates
    /// only has no entries, but it still makes a gateway read a push whose first notice was lost.
    private static func notice(_ channelID: Int64, _ members: [Stored]) -> Mss_Bus_V1_GatewayNotice {
        let new = entries(of: members)
        return .with {
            $0.oplogs.channelID = channelID
            $0.oplogs.target = members[0].row.command.target
            $0.oplogs.bizType = members[0].row.command.bizType
            $0.oplogs.after = members[0].appended.headBefore.value
            $0.oplogs.upto = members[0].appended.headAfter.value
            $0.oplogs.databaseTimeMs = members[0].appended.databaseTime.milliseconds
            $0.oplogs.entries = new.map { member in
                var oplog = member.row.command.oplog
                oplog.id = member.appended.oplogID.value
                oplog.validUntilMs = member.appended.validUntil.milliseconds
                oplog.createdAtMs = member.appended.createdAt.milliseconds
                oplog.persistent = !member.awaitsOutcome
                return oplog
            }
        }
    }
}
