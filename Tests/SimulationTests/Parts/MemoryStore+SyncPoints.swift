import SyncModel

@testable import SyncStore

// Sync points and resend counts.
extension MemoryStore {
    /// Records that the outcomes of these pushes are known.
    mutating func recordOutcomes(of pushes: [OplogStore.LivePush]) {
        for push in pushes {
            guard let place = channels.firstIndex(where: { $0.id == push.channelID }) else { continue }
            channels[place].awaitsOutcome.remove(push.oplogID)
        }
    }

    mutating func record(_ resends: [SyncPointStore.Resend], _ advances: [SyncPointStore.Advance]) {
        for resend in resends {
            let receiver = Receiver(
                channelID: resend.channelID, deviceID: resend.deviceID, storeID: resend.storeID, userID: resend.userID)
            syncPoints[receiver, default: SyncPoint()].resentID = resend.oplogID
            syncPoints[receiver, default: SyncPoint()].repeats = resend.repeats
        }
        for advance in advances {
            guard let channel = channels.first(where: { $0.id == advance.channelID }),
                maySet(advance, of: channel.address.target)
            else { continue }
            let receiver = Receiver(
                channelID: advance.channelID, deviceID: advance.deviceID, storeID: advance.storeID,
                userID: advance.userID)
            let acknowledged = min(advance.acknowledged, channel.head)
            if acknowledged > syncPoints[receiver]?.acknowledged ?? .zero {
                syncPoints[receiver, default: SyncPoint()].acknowledged = acknowledged
            }
            let upto = min(advance.upto, channel.head)
            guard upto > syncPoints[receiver]?.oplogID ?? OplogID(-1) else { continue }
            syncPoints[receiver, default: SyncPoint()].oplogID = upto
        }
    }

    /// Whether a device may move the sync point. Only the owner moves the one sync point of a user.
    private func maySet(_ advance: SyncPointStore.Advance, of target: TargetAddress) -> Bool {
        let user = UserKey(instanceID: target.instanceID, userID: UserID(target.target))
        return target.kind != .user || !advance.deviceID.isEmpty || owners[user]?.deviceID.text == advance.storedBy
    }

    func checksOwners(of instanceID: InstanceID) -> Bool {
        let own = configurations.values.filter { $0.instanceID == instanceID }
        return instances[instanceID].map { InstanceChecks($0, own).ofOwners } ?? false
    }
}
