import BusMessages
import DeviceProtocol
import SyncModel

/// An event of a device's session. Events that do not apply in the current stage are ignored.
enum SessionEvent: Sendable {
    // From the device.
    case frame(Mss_Device_V1_Packet)
    case brokenFrame(reason: String)
    case overRate(RateRefusal)
    case disconnected
    // Replies to the session's requests; nil: no reply came.
    /// Whether the nonce of the Connect was new; nil: unknown.
    case claimed(Bool?)
    /// The reply to a registration of this bind.
    case registered(Mss_Bus_V1_SessionReply?, bindNumber: UInt32)
    case validated(Mss_Bus_V1_ValidateReply?, bindNumber: UInt32, askedAt: ContinuousClock.Instant)
    /// The page that was requested under this bind.
    case fetched(Mss_Bus_V1_FetchReply?, channelID: Int64, bindNumber: UInt32)
    case historyRead(Mss_Bus_V1_HistoryReply?, of: UInt64)
    case summaryRead(Mss_Bus_V1_SummaryReply?, of: UInt64)
    case resendRecorded(channelID: Int64, oplogID: OplogID, repeats: Int)
    case operationsAnswered(Mss_Bus_V1_SubmitReply?, number: UInt32)
    /// Whether the values of the frame with this number are stored.
    case parametersKept(Bool, number: UInt32)
    // From writers, validators and operators.
    case noticed(ChannelNotice)
    case superseded(by: Int64)
    case rereadWaiting
    case invalidated(UserID, digest: [UInt8], reason: String)
    /// An empty digest: every session of the user.
    case revoked(UserID, digest: [UInt8])
    case disconnectedByOperator
    // From this gateway.
    case registrationDue
    case contextChanged
    /// The connection has free capacity again.
    case roomGrew
    case ticked
    /// This gateway has more sessions than other gateways.
    case surplus
    case drained
}
