import BusMessages
import SwiftProtobuf
import SyncModel
import SyncStore

/// Who is told of a group of appends, and which pushes found an eligible device; pure.
enum NoticePlan {
    /// One push as it was stored, and the sessions that it may be for.
    struct Stored {
        let row: AppendWork.Row
        let appended: OplogStore.Appended
        let sessions: [DeviceSessionStore.Presence]

        /// Names the oplog; a repeat has that of the first call.
        struct Key: Hashable {
            let channelID: Int64
            let oplogID: OplogID
        }

        var key: Key { Key(channelID: appended.channelID, oplogID: appended.oplogID) }

        /// Only gateways know whether it reaches somebody: nothing of it is stored. A repeat goes out again, under the id
        /// of the first call, as long as nobody has recorded what became of that.
        var isLiveOnly: Bool {
            #if KNOWN_BAD
                if KnownBad.liveRepeatIsDuplicate.isOn { return !appended.isPersistent && !appended.isDuplicate }
            #endif
            return appended.awaitsOutcome
        }

        /// Its validity had ended when it was stored, by the database's clock.
        var hasEnded: Bool { appended.validUntil <= appended.createdAt }

        /// Handed towards at least one eligible device (spec H4).
        var isOnline: Bool {
            !hasEnded
                && sessions.contains { session in
                    appended.rules.obstacle(
                        isSuspended: session.isSuspended, isOwner: session.isOwner,
                        hasValidVerdict: session.hasValidVerdict) == nil
                        && row.append.oplog.targeting.exclusion(of: session.traits) == nil
                }
        }

        /// Who is told; of a single-device channel only the owner's session. The gateway asks every rule anew.
        var receivers: [DeviceSessionStore.Presence] {
            appended.rules.isSingleDevice ? sessions.filter(\.isOwner) : sessions
        }
    }

    /// One channel's step and the gateways to tell.
    struct ChannelStep {
        let notice: Mss_Bus_V1_GatewayNotice
        let gatewayIDs: [String]
        /// Pushes that wait for what the gateways say. Those with one id are one entry of the notice, the first's.
        let liveOnly: [Stored]
    }

    /// The steps in channel order; one per channel that has somebody to tell, with all that the group added to it.
    ///
    /// - Parameter everyGateway: who is told of an immediate global push.
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
                liveOnly: members.filter { $0.isLiveOnly && online.contains($0.key) })
        }
    }

    /// The pushes that a notice carries, in id order, each once.
    private static func entries(of members: [Stored]) -> [Stored] {
        var ids: Set<OplogID> = []
        return members.filter {
            ($0.isLiveOnly || !$0.appended.isDuplicate) && ids.insert($0.appended.oplogID).inserted
        }.sorted { $0.appended.oplogID < $1.appended.oplogID }
    }

    /// The channel's step from its head before the group to its head after it. A group of duplicates alone wakes a
    /// gateway that missed the first notice.
    private static func notice(_ channelID: Int64, _ members: [Stored]) -> Mss_Bus_V1_GatewayNotice {
        #if KNOWN_BAD
            let isCut = KnownBad.noticeDropsEntries.isOn && members.count > 1
            let new = entries(of: members).dropFirst(isCut ? 1 : 0)
        #else
            let new = entries(of: members)
        #endif
        return .with {
            $0.oplogs.channelID = channelID
            $0.oplogs.target = members[0].row.command.target
            $0.oplogs.bizType = members[0].row.command.bizType
            $0.oplogs.after = members[0].appended.headBefore.value
            $0.oplogs.upto = members[0].appended.headAfter.value
            $0.oplogs.databaseTimeMs = members[0].appended.databaseTime.milliseconds
            #if KNOWN_BAD
                if KnownBad.noticeSaysNothingBefore.isOn { $0.oplogs.after = 0 }
            #endif
            $0.oplogs.entries = new.map { member in
                var oplog = member.row.command.oplog
                oplog.id = member.appended.oplogID.value
                oplog.validUntilMs = member.appended.validUntil.milliseconds
                oplog.createdAtMs = member.appended.createdAt.milliseconds
                oplog.persistent = !member.isLiveOnly
                return oplog
            }
        }
    }
}
