import DeviceProtocol
import SwiftProtobuf
import SyncModel

// Builds the frames that a session sends.

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
            $0.connected.maxHeartbeatSeconds = UInt32(limits.longestInterval.components.seconds)
        }
    }

    static func ownershipTaken(_ epoch: Int64, _ bindNumber: UInt32) -> Self {
        .with {
            $0.ownershipTaken.bindNumber = bindNumber
            $0.ownershipTaken.ownershipEpoch = epoch
        }
    }

    static func sessionState(isValid: Bool, reason: String, bindNumber: UInt32) -> Self {
        .with {
            $0.sessionState.bindNumber = bindNumber
            $0.sessionState.validity = isValid ? .valid : .invalid
            $0.sessionState.reason = reason
        }
    }

    /// - Parameter retryAfterMilliseconds: the delay before the device repeats refused operations; 0: no delay.
    static func operationsTaken(
        _ number: UInt32, refusals: [OperationRefusal], retryAfterMilliseconds: UInt32
    ) -> Self {
        .with {
            $0.operationsTaken.number = number
            $0.operationsTaken.refusals = refusals.map { refusal in
                .with {
                    $0.operationID = refusal.operationID
                    $0.code = refusal.code
                    $0.message = refusal.message
                }
            }
            $0.operationsTaken.retryAfterMs = retryAfterMilliseconds
        }
    }

    /// - Parameters:
    ///   - key: the channel, if it is known.
    ///   - fill: sets the content; not needed for a refusal.
    static func historyPage(
        _ requestNumber: UInt32, _ refusal: Mss_Device_V1_RequestRefusal = .none,
        of key: ChannelKey? = nil, to identity: SessionIdentity? = nil,
        _ fill: (inout Mss_Device_V1_HistoryPage) -> Void = { _ in }
    ) -> Self {
        .with {
            $0.historyPage.requestNumber = requestNumber
            $0.historyPage.refusal = refusal
            if let key, let identity {
                $0.historyPage.kind = key.kind.wire
                $0.historyPage.bindNumber = key.kind.needsUser ? identity.bindNumber : 0
            }
            fill(&$0.historyPage)
        }
    }

    static func summaryPage(
        _ requestNumber: UInt32, _ refusal: Mss_Device_V1_RequestRefusal = .none, bindNumber: UInt32,
        channels: [Mss_Device_V1_ChannelSummary] = [], more: Bool = false, nextConversation: String = ""
    ) -> Self {
        .with {
            $0.summaryPage.requestNumber = requestNumber
            $0.summaryPage.refusal = refusal
            $0.summaryPage.bindNumber = bindNumber
            $0.summaryPage.channels = channels
            $0.summaryPage.more = more
            $0.summaryPage.nextConversation = nextConversation
        }
    }
}

extension Mss_Device_V1_ChannelBatch {
    /// - Parameters:
    ///   - reread: the number of a re-read; 0: a batch that moves the position.
    ///   - passedOverUpto: up to this id valid oplogs were left out; zero: none.
    init(
        _ key: ChannelKey, of identity: SessionIdentity, after: OplogID, upto: OplogID,
        entries: [Oplog], reread: UInt64 = 0, passedOverUpto: OplogID = .zero
    ) {
        self = .with {
            $0.kind = key.kind.wire
            $0.bizType = key.bizType.text
            $0.bindNumber = key.kind.needsUser ? identity.bindNumber : 0
            $0.after = after.value
            $0.upto = upto.value
            $0.entries = entries.map(\.wire)
            $0.reread = reread
            $0.passedOverUpto = passedOverUpto.value
        }
    }
}

extension Oplog {
    /// The oplog on the wire of the device protocol.
    var wire: Mss_Device_V1_Entry {
        .with {
            $0.oplogID = id.value
            $0.payload = .init(payload)
            $0.binary = isBinary
            $0.thirdMessageID = thirdMessageID.text
            $0.createdAtMs = createdAt.milliseconds
            $0.recalls = recalls?.value ?? 0
            $0.validUntilMs = validUntil.milliseconds
            $0.conversation = conversation
        }
    }
}
