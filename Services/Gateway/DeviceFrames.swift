import DeviceProtocol
import SwiftProtobuf
import SyncModel

// The frames that a session sends, from the values that it holds.

extension Mss_Device_V1_Packet {
    static func bindResult(_ bindNumber: UInt32, refusedBecause reason: String? = nil) -> Self {
        .with {
            $0.bindResult.bindNumber = bindNumber
            $0.bindResult.accepted = reason == nil
            $0.bindResult.reason = reason ?? ""
        }
    }

    static func connected(_ connectionEpoch: Int64, _ limits: SessionLimits, at time: WallTime) -> Self {
        .with {
            $0.connected.connectionID = String(connectionEpoch)
            $0.connected.heartbeatSeconds = UInt32(limits.heartbeat.components.seconds)
            $0.connected.maxFrameBytes = UInt32(DeviceProtocolLimits.toGatewayBytes)
            $0.connected.serverTimeMs = time.milliseconds
            $0.connected.firstResendMs = UInt32(limits.firstResend.wholeMilliseconds)
        }
    }

    static func sessionState(isValid: Bool, reason: String, bindNumber: UInt32) -> Self {
        .with {
            $0.sessionState.bindNumber = bindNumber
            $0.sessionState.validity = isValid ? .valid : .invalid
            $0.sessionState.reason = reason
        }
    }
}

extension Mss_Device_V1_ChannelBatch {
    /// - Parameter reread: 0 for what moves the position.
    init(
        _ key: SessionStateMachine.ChannelKey, of identity: SessionIdentity, after: OplogID, upto: OplogID,
        entries: [Oplog], reread: UInt64 = 0
    ) {
        self = .with {
            $0.kind = key.kind.wire
            $0.bizType = key.bizType.text
            $0.bindNumber = key.kind.needsUser ? identity.bindNumber : 0
            $0.after = after.value
            $0.upto = upto.value
            $0.entries = entries.map(\.wire)
            $0.reread = reread
        }
    }
}

extension Oplog {
    /// The oplog as a device gets it.
    var wire: Mss_Device_V1_Entry {
        .with {
            $0.oplogID = id.value
            $0.payload = .init(payload)
            $0.binary = isBinary
            $0.thirdMessageID = thirdMessageID.text
            $0.createdAtMs = createdAt.milliseconds
            $0.recalls = recalls?.value ?? 0
        }
    }
}
