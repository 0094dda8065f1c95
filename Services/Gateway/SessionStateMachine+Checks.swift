import BusMessages
import DeviceProtocol
import SyncModel

// Asking the tenant whether the session is valid (spec V5, V6).
extension SessionStateMachine {
    /// Asks, unless a question is on its way.
    mutating func validate(in world: SessionSurroundings) -> [SessionAction] {
        guard
            let identity, let userID = identity.userID, let instance = world.instance(identity.instanceID),
            !instance.validatorURL.isEmpty, check.ask()
        else { return [] }
        return [
            .validate(
                instanceID: identity.instanceID, userID: userID, sessionID: identity.sessionID,
                bindNumber: identity.bindNumber)
        ]
    }

    /// The tenant's answer, or that there is none; an answer to an older bind is ignored.
    mutating func validated(
        _ reply: Mss_Bus_V1_ValidateReply?, bindNumber: UInt32, askedAt: ContinuousClock.Instant,
        in world: SessionSurroundings
    ) -> [SessionAction] {
        guard phase == .open || phase == .opening, let identity, bindNumber == identity.bindNumber else { return [] }
        guard check.answered(reply, askedAt: askedAt, now: world.now, random: world.random) else { return [] }
        let isValid = check.verdict != .invalid
        let reason = isValid ? "" : reply?.reason ?? ""
        let state = Mss_Device_V1_Packet.sessionState(
            isValid: isValid, reason: reason, bindNumber: identity.bindNumber)
        var actions: [SessionAction] = []
        if opensBind {
            untoldState = state
        } else {
            actions.append(.send(state))
        }
        if connectionEpoch > 0, !isRegistering {
            actions.append(
                .update(identity, connectionEpoch: connectionEpoch, verdictFor: check.remaining(at: world.now)))
        } else {
            // The registration on its way does not know it: the store is told when that is answered.
            hasUntoldVerdict = true
        }
        return actions + readOn(in: world)
    }
}
