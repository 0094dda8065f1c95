import BusMessages
import SwiftProtobuf
import SyncModel
import SyncStore

// Conversions of query results to bus messages.

extension TraceStore.Name {
    /// The oplog id counts if both ids are given.
    init(bus: Mss_Bus_V1_OplogName) {
        self.init(
            instanceID: InstanceID(bus.instanceID), bizType: BizType(bus.bizType), target: bus.linkToken,
            key: bus.oplogID > 0 ? .oplogID(OplogID(bus.oplogID)) : .thirdMessageID(ThirdMessageID(bus.thirdMessageID)))
    }
}

extension Mss_Bus_V1_StateCount {
    init(_ state: DeliveryState, _ devices: Int64) {
        self = .with {
            $0.state = Int32(state.rawValue)
            $0.devices = devices
        }
    }
}

extension Mss_Bus_V1_ReceiverTrace {
    init(_ receiver: TraceStore.Receiver, _ outcome: (state: DeliveryState, at: WallTime?)) {
        self = .with {
            $0.deviceID = receiver.deviceID.text
            $0.state = Int32(outcome.state.rawValue)
            $0.atMs = outcome.at?.milliseconds ?? 0
            $0.connected = receiver.presence != nil
            $0.handedOutAtMs = receiver.record.handedOutAt?.milliseconds ?? 0
            $0.attempts = UInt32(receiver.record.attempts)
            $0.syncPoint = receiver.syncPoint.value
            $0.confirmedAtMs = receiver.record.confirmedAt?.milliseconds ?? 0
        }
    }
}

extension Mss_Bus_V1_OplogNotice {
    /// The notice of consecutive tombstones of one channel. For repeated recalls, the notice only names the head of the
    /// channel: ids between their tombstones and the head are not in it.
    ///
    /// - Parameter recalls: from one transaction, in its order; at least one.
    init(_ recalls: [OplogStore.Recalled], of address: ChannelAddress, correlation: UInt64) {
        self = .with {
            $0.channelID = recalls[0].channelID
            $0.target = address.target.bus
            $0.bizType = address.bizType.text
            $0.after = recalls[0].headBefore.value
            $0.upto = recalls.map { max($0.headBefore, $0.tombstone.id).value }.max() ?? 0
            $0.entries = recalls.map(\.tombstone.bus)
            $0.databaseTimeMs = recalls.map(\.tombstone.createdAt.milliseconds).max() ?? 0
            $0.correlation = correlation
        }
    }
}

extension ConnectedDeviceStore.Row {
    var bus: Mss_Bus_V1_DeviceRow {
        .with {
            $0.deviceID = deviceID.text
            $0.userID = userID?.text ?? ""
            $0.gatewayID = gatewayID
            $0.operatingSystem = Mss_Bus_V1_OperatingSystem(traits.operatingSystem)
            $0.appVersion = traits.appVersion
            $0.foreground = isForeground
            $0.owner = isOwner
            $0.validVerdict = hasValidVerdict
            $0.sinceMs = since.milliseconds
        }
    }
}

extension ConnectedDeviceStore.Channel {
    var bus: Mss_Bus_V1_DeviceChannel {
        .with {
            $0.kind = kind.bus
            $0.bizType = bizType.text
            $0.head = head.value
            $0.syncPoint = syncPoint.value
        }
    }
}

extension DeadLetterStore.Letter {
    var bus: Mss_Bus_V1_DeadLetter {
        .with {
            $0.bizType = address.bizType.text
            $0.target = address.target.bus
            $0.oplogID = oplogID.value
            $0.thirdMessageID = thirdMessageID.text
            $0.deviceID = deviceID.text
            $0.attempts = UInt32(attempts)
            $0.deadAtMs = deadAt.milliseconds
            $0.replayable = isReplayable
        }
    }
}
