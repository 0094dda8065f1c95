import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

// Registrations of the session, and the ownership of the user's single-device data, which moves with them (D8).
extension DeviceSession {
    /// Registers the session. A registration in flight also serves: after its reply, an outdated one is repeated.
    mutating func register(in context: SessionContext) -> [SessionAction] {
        guard !registration.isInFlight else { return [.listen(identity.targets)] }
        let filtered = context.control.filtered(identity.instanceID)
        eligibility.filters.asked(filtered)
        eligibility.identity.subscriptions.filtered = filtered.bizTypes
        eligibility.registration.begin(in: context)
        let claims = eligibility.mayClaimOwnership(in: context)
        eligibility.ownership.isAsked = claims
        return [
            .listen(identity.targets),
            .open(
                identity, connectionEpoch: registration.connectionEpoch, opensBind: registration.opensBind,
                claim: claims ? eligibility.ownership.claim : nil,
                verdictFor: eligibility.verdictForStore(in: context)),
        ]
    }

    /// Registers and reads again, because the gateway's knowledge may be old: after a new lease or a reconnect to the
    /// broker.
    mutating func registerAgain(in context: SessionContext) -> [SessionAction] {
        eligibility.registration.wantAgain() ? register(in: context) : []
    }

    /// Processes the reply to a registration.
    ///
    /// - Parameter bindNumber: the bind of the registration. If another bind came meanwhile, that one is registered
    ///   now.
    mutating func registered(
        _ reply: Mss_Bus_V1_SessionReply, bindNumber: UInt32, in context: SessionContext
    ) -> [SessionAction] {
        let outcome = eligibility.registration.apply(
            reply, bindNumber: bindNumber, current: identity.bindNumber, in: context)
        switch outcome {
        case .accepted: break
        case .outdated: return register(in: context)
        case .failed: return registrationFailed(in: context)
        case .wrongSecret:
            return [
                .close(.registerAnew, "this device_id is bound to another secret: use a new device_id and secret")
            ]
        case .superseded: return [.close(.superseded, "a newer connection of this device is open")]
        }
        // The control data may have changed while the Connect waited and no lease held.
        if !registration.isOpen, !ConnectCheck.isSignedByLiveKey(identity, in: context) { return [.signatureRefused] }
        // Only here: a dropped reply must not end the ownership request before the device was informed.
        let owner = eligibility.ownership.apply(reply)
        window.apply(reply.channels, becomesOwner: owner.isNew, by: eligibility, in: context)
        eligibility.filters.apply(reply.channels)
        window.applyEarlyHeads(by: eligibility, in: context)
        // Before data is read: a revocation that was stored before this registration applies now.
        let ended = applyRevocation(reply, in: context)
        window.raiseStored()
        var actions = sendOpening(reply, in: context) + ended
        if owner.tellsDevice { actions.append(.send(.ownershipTaken(reply.ownershipEpoch, identity.bindNumber))) }
        if identity.userID != nil, let frame = eligibility.filters.frame(of: reply, bindNumber: identity.bindNumber) {
            actions.append(.send(frame))
        }
        if verdicts.dequeueStoreUpdate() { actions += eligibility.updateStore(in: context) }
        rereads.apply(reply.rereads)
        actions += readOn(in: context)
        if registration.isWantedAgain { actions += registerAgain(in: context) }
        return actions + registerForFilters(in: context)
    }

    /// The frames that open the session and the bind, when they are new.
    private mutating func sendOpening(
        _ reply: Mss_Bus_V1_SessionReply, in context: SessionContext
    ) -> [SessionAction] {
        var actions: [SessionAction] = []
        if eligibility.registration.open() {
            window.oweCaughtUp()
            actions.append(.send(.connected(reply.connectionEpoch, window.limits, at: context.databaseTime)))
        }
        if eligibility.registration.openBind() {
            window.oweCaughtUp()
            actions.append(.send(.bindResult(identity.bindNumber)))
            if let state = verdicts.dequeueState() { actions.append(.send(state)) }
        }
        return actions
    }

    // MARK: Changed rules

    /// Processes a change of control data or of the lease.
    mutating func contextChanged(in context: SessionContext) -> [SessionAction] {
        eligibility.registration.contextChanged()
        let actions = readOn(in: context) + registerForFilters(in: context)
        // To read the sync points of channels that have other receivers than before.
        let hasOthers = window.hasOtherReceivers(by: eligibility, in: context)
        return actions + (hasOthers ? registerAgain(in: context) : []) + claimOwnership(in: context)
    }

    /// Registers again when the filter rules differ from those of the last registration.
    private mutating func registerForFilters(in context: SessionContext) -> [SessionAction] {
        let digest = context.control.filtered(identity.instanceID).digest
        guard registration.isOpen, digest != eligibility.filters.digest else { return [] }
        return registerAgain(in: context)
    }

    // MARK: Ownership

    /// Registers again to claim the requested ownership, when nothing prevents it any more.
    mutating func claimOwnership(in context: SessionContext) -> [SessionAction] {
        let ownership = eligibility.ownership
        guard ownership.isWanted, !(registration.isInFlight && ownership.isAsked),
            eligibility.mayClaimOwnership(in: context)
        else { return [] }
        return registerAgain(in: context)
    }

    /// Registers again to ask the store for the owner, because a message named another device. The message may be older
    /// than this device's ownership.
    mutating func recheckOwnership(in context: SessionContext) -> [SessionAction] {
        guard eligibility.ownership.isHeld else { return [] }
        eligibility.ownership.doubt()
        return registerAgain(in: context)
    }
}
