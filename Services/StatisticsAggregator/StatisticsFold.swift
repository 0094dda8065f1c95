import BusMessages
import SwiftProtobuf
import SyncModel
import SyncStore

/// Gathers facts into one batch for the database; pure.
struct StatisticsFold {
    /// The valid times of facts, in milliseconds since 1970: up to the end of the year 9999. A later time is an error,
    /// and date arithmetic fails on it.
    private static let times: ClosedRange<Int64> = 0...253_402_300_799_999

    private(set) var batch = StatisticsBatch()
    /// The newest time of the facts; nil: none yet.
    private(set) var newest: WallTime?
    /// The number of facts of unknown kinds, from a newer gateway.
    private(set) var unknownFacts = 0

    /// The facts of a body.
    ///
    /// - Throws: the reason why no fact of the body can ever be folded.
    static func facts(of body: [UInt8]) throws(RejectedBody) -> [Mss_Bus_V1_Fact] {
        guard let facts = Mss_Bus_V1_Facts.elements(of: body) else {
            throw RejectedBody(reason: "the body is not a list of facts")
        }
        guard facts.allSatisfy({ times.contains($0.atMs) }) else {
            throw RejectedBody(reason: "the time of a fact is out of range")
        }
        return facts
    }

    /// Adds one fact.
    mutating func add(_ fact: Mss_Bus_V1_Fact) {
        let time = WallTime(milliseconds: fact.atMs)
        func key(_ oplogID: Int64) -> StatisticsBatch.OplogKey {
            StatisticsBatch.OplogKey(channelID: fact.channelID, oplogID: OplogID(oplogID))
        }
        func receiver(_ deviceID: String) -> StatisticsBatch.ReceiverKey {
            StatisticsBatch.ReceiverKey(channelID: fact.channelID, deviceID: DeviceID(deviceID))
        }
        switch fact.body {
        case .handedOut(let handedOut):
            let handOut = StatisticsBatch.HandOut(handedOut, at: time)
            let device = DeviceID(handedOut.deviceID)
            for oplogID in handedOut.oplogIds { batch.handedOut(key(oplogID), to: device, as: handOut) }
        case .confirmed(let confirmed):
            let device = DeviceID(confirmed.deviceID)
            for oplogID in confirmed.oplogIds { batch.confirmed(key(oplogID), by: device, at: time) }
        case .skipped(let skipped):
            guard let reason = SkipReason(rawValue: Int16(truncatingIfNeeded: skipped.reason.rawValue)) else {
                unknownFacts += 1
                return
            }
            let device = DeviceID(skipped.deviceID)
            for oplogID in skipped.oplogIds { batch.skipped(key(oplogID), for: device, because: reason, at: time) }
        case .resent(let resent):
            batch.resent(
                key(resent.oplogID), by: DeviceID(resent.deviceID), user: resent.userID,
                attempts: Int(resent.attempts), isDead: resent.dead, at: time)
        case .discarded(let discarded):
            batch.discarded(
                receiver(discarded.deviceID), after: OplogID(discarded.after), upto: OplogID(discarded.upto), at: time)
        case .connected(let connected):
            // Its time is the beginning of the minute, almost a minute ago at most, so it does not count for the lag.
            return batch.connected(
                Int(connected.devices), of: InstanceID(connected.instanceID), gatewayID: connected.gatewayID, at: time)
        case nil:
            unknownFacts += 1
            return
        }
        newest = newest.map { max($0, time) } ?? time
    }
}

extension StatisticsBatch.HandOut {
    init(_ handedOut: Mss_Bus_V1_HandedOut, at time: WallTime) {
        self.init(
            at: time, operatingSystem: OperatingSystem(bus: handedOut.operatingSystem),
            appVersion: handedOut.appVersion, user: handedOut.userID)
    }
}

/// The reason why a body of facts is rejected before any SQL runs.
struct RejectedBody: Error {
    let reason: String
}
