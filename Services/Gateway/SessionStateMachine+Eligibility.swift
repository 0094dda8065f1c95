import DeviceProtocol
import SyncModel

// What may go out now, and what the device says that it takes.
extension SessionStateMachine {
    /// Why a channel's data may not go out now.
    enum Withholding {
        /// This gateway may be wrong about its sessions; nothing about the device has changed.
        case noLease
        /// What comes meanwhile is a backlog (spec D10).
        case notEligible(Obstacle)
    }

    /// The rule of hand-out, asked at every batch (design §1; spec §1, Eligible). Nil: it may go out.
    func withholding(
        _ key: ChannelKey, of identity: SessionIdentity, in world: SessionSurroundings
    ) -> Withholding? {
        guard world.holdsLease, connectionEpoch > 0 else { return .noLease }
        let found = world.configuration(identity.instanceID, key.bizType)
        let configuration = found?.kind == key.kind ? found : nil
        let obstacle =
            Obstacle(instance: world.instance(identity.instanceID), configuration: configuration)
            ?? configuration?.rules.obstacle(
                isSuspended: identity.suspended.contains(key.bizType), isOwner: ownsUser,
                hasValidVerdict: check.verdict.allowsDelivery(at: world.now))
        return obstacle.map { .notEligible($0) }
    }

    /// Whether only the owner of the user receives the channel.
    func isSingleDevice(
        _ key: ChannelKey, of identity: SessionIdentity, in world: SessionSurroundings
    ) -> Bool {
        world.configuration(identity.instanceID, key.bizType)?.isSingleDevice ?? false
    }

    /// The business types of a device's list; nil when it is too long. What no configuration can be called is left out.
    static func suspended(_ list: [String]) -> Set<BizType>? {
        guard list.count <= Limits.suspendedBizTypes else { return nil }
        return Set(list.filter { $0.utf16.count <= Limits.bizTypeUnits && !$0.utf8.contains(0) }.map { BizType($0) })
    }
}
