import BusMessages
import DeviceProtocol
import SyncModel

/// What happens to a device's session. Events of the wrong moment have no effect: each says what it needs.
enum SessionEvent: Sendable {
    // From the device.
    case frame(Mss_Device_V1_Packet)
    case brokenFrame(reason: String)
    case overRate(RateRefusal)
    case disconnected
    // Answers to what the session asked for; nil: there is none.
    /// Whether the nonce of the Connect was new.
    case claimed(Bool?)
    /// The registration that was for this bind.
    case registered(Mss_Bus_V1_SessionReply?, bindNumber: UInt32)
    case validated(Mss_Bus_V1_ValidateReply?, bindNumber: UInt32, askedAt: ContinuousClock.Instant)
    /// The page that was asked for under this bind.
    case fetched(Mss_Bus_V1_FetchReply?, channelID: Int64, bindNumber: UInt32)
    case historyRead(Mss_Bus_V1_HistoryReply?, of: UInt64)
    case summaryRead(Mss_Bus_V1_SummaryReply?, of: UInt64)
    case resendRecorded(channelID: Int64, oplogID: OplogID, repeats: Int)
    case operationsAnswered(Mss_Bus_V1_SubmitReply?, number: UInt32)
    /// Whether the values of the frame with this number are kept.
    case parametersKept(Bool, number: UInt32)
    // What writers, validators and operators tell.
    case noticed(ChannelNotice)
    case superseded(by: Int64)
    case rereadWaiting
    case invalidated(UserID, digest: [UInt8], reason: String)
    /// An empty digest: every session of the user.
    case revoked(UserID, digest: [UInt8])
    case disconnectedByOperator
    // Of this gateway.
    case announcementDue
    case surroundingsChanged
    /// The connection takes data again.
    case roomGrew
    case ticked
    /// This gateway has more sessions than its part.
    case surplus
    case drained
}

extension SessionStateMachine {
    /// Gives it an event; closed, it takes none.
    ///
    /// - Returns: what is to be done, in this order.
    mutating func handle(_ event: SessionEvent, in world: SessionSurroundings) -> [SessionAction] {
        guard phase != .closed else { return [] }
        switch event {
        case .frame(let packet): return received(packet, in: world)
        case .brokenFrame(let reason): return close(.protocolViolation, reason)
        case .overRate(let refusal): return refused(refusal)
        case .disconnected:
            disconnected()
            return []
        case .claimed(let isFresh): return claimed(isFresh, in: world)
        case .registered(let reply?, let bindNumber): return registered(reply, bindNumber: bindNumber, in: world)
        case .registered(nil, _): return registrationFailed(in: world)
        case .validated(let reply, let bindNumber, let askedAt):
            return validated(reply, bindNumber: bindNumber, askedAt: askedAt, in: world)
        case .fetched(_, let channelID, let bindNumber) where !isOfThisBind(channelID, bindNumber): return []
        case .fetched(let page?, let channelID, _): return fetched(page, channelID: channelID, in: world)
        case .fetched(nil, let channelID, _): return fetchFailed(channelID: channelID, in: world)
        case .historyRead(let page, let id): return historyRead(page, of: id, in: world)
        case .summaryRead(let page, let id): return summaryRead(page, of: id, in: world)
        case .resendRecorded(let channelID, let oplogID, let repeats):
            return resendRecorded(channelID: channelID, oplogID: oplogID, repeats: repeats, in: world)
        case .operationsAnswered(let reply, let number): return answeredOperations(reply, number: number)
        case .parametersKept(let isKept, let number): return parametersKept(isKept, number: number, in: world)
        case .noticed(let notice): return noticed(notice, in: world)
        case .superseded(let epoch): return superseded(by: epoch)
        case .rereadWaiting, .announcementDue: return announce(in: world)
        case .invalidated(let userID, let digest, let reason):
            return invalidated(userID, digest: digest, reason: reason, in: world)
        case .revoked(let userID, let digest): return revoked(userID, digest: digest, in: world)
        case .disconnectedByOperator: return disconnectedByOperator()
        case .surroundingsChanged: return surroundingsChanged(in: world)
        case .roomGrew: return readOn(in: world)
        case .ticked: return ticked(in: world) + resendDue(in: world)
        case .surplus: return surplus()
        case .drained: return drained()
        }
    }
}
