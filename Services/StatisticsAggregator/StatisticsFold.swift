import BusMessages
import SwiftProtobuf
import SyncModel
import SyncStore

/// Gathers facts off the bus into one batch for the database; pure.
struct StatisticsFold {
    private(set) var batch = StatisticsBatch()
    /// The newest moment of which a fact spoke; nil: none yet.
    private(set) var newest: WallTime?
    /// Facts of a kind that this build does not know, from a newer neighbour.
    private(set) var unknownFacts = 0

    /// Adds one fact.
    mutating func add(_ fact: Mss_Bus_V1_Fact) {
        let time = WallTime(milliseconds: fact.atMs)
        func key(_ oplogID: Int64) -> StatisticsBatch.OplogKey {
            StatisticsBatch.OplogKey(channelID: fact.channelID, oplogID: OplogID(oplogID))
        }
        switch fact.body {
        case .accepted(let accepted):
            guard let target = TargetAddress(bus: accepted.target) else {
                unknownFacts += 1
                return
            }
            let address = ChannelAddress(target: target, bizType: BizType(accepted.bizType))
            batch.accepted(key(accepted.oplogID), of: address, at: time)
        case .handedOut(let handedOut):
            for oplogID in handedOut.oplogIds { batch.handedOut(key(oplogID), at: time) }
        case .confirmed(let confirmed):
            for oplogID in confirmed.oplogIds { batch.confirmed(key(oplogID), at: time) }
        case .stored(let stored):
            let receiver = StatisticsBatch.ReceiverKey(
                channelID: fact.channelID, deviceID: DeviceID(stored.deviceID))
            batch.stored(receiver, upto: OplogID(stored.upto), at: time)
        case nil:
            unknownFacts += 1
            return
        }
        newest = newest.map { max($0, time) } ?? time
    }
}
