import SyncModel
import Testing

@testable import SyncStore

/// Rules of the store that no simulated run depends on, because the gateway keeps them too or recovers by itself.
/// `DeliveryStoreContractTests` check the same rules on PostgreSQL.
@Suite("The store in memory") struct MemoryStoreTests {
    private static let instance = Instance(
        id: InstanceID("i"), name: "", isEnabled: true, validatorURL: "", verdictLifetime: .seconds(600))
    private static let now = WallTime(milliseconds: 1_800_000_000_000)
    private static let address = ChannelAddress(
        target: TargetAddress(instanceID: instance.id, kind: .user, target: "u"), bizType: BizType("B"))

    /// A store with one push to user u.
    private static func store(isMultiDevice: Bool) -> (store: MemoryStore, channelID: Int64) {
        let configuration = SyncConfiguration(
            instanceID: instance.id, bizType: address.bizType, description: "", kind: .user,
            isMultiDevice: isMultiDevice, isPersistent: true, repush: .all, checksSession: false, isOnline: true)
        var store = MemoryStore(instances: [instance], configurations: [configuration])
        let push = OplogStore.Append(
            address: address,
            oplog: Oplog(
                id: .zero, thirdMessageID: ThirdMessageID("push"), payload: [1], isBinary: false,
                targeting: Targeting(), validUntil: WallTime(milliseconds: 0), createdAt: WallTime(milliseconds: 0),
                isPersistent: true))
        let channelID = store.append([push], at: now).first??.channelID ?? 0
        return (store, channelID)
    }

    @Test("D8: a device that does not own the user does not move the user's one sync point, and moves its own")
    func sharedPoint() {
        var (store, channelID) = Self.store(isMultiDevice: false)
        func advance(_ device: String, _ storeID: String, storedBy: String) -> SyncPointStore.Advance {
            SyncPointStore.Advance(
                channelID: channelID, deviceID: device, storeID: storeID, userID: "", upto: OplogID(1),
                acknowledged: .zero, storedBy: storedBy)
        }
        store.record([], [advance("", "", storedBy: "stranger")])
        #expect(store.syncPoint(of: Self.address, "", "") == nil)
        (store, channelID) = Self.store(isMultiDevice: true)
        store.record([], [advance("d", "s", storedBy: "")])
        #expect(store.syncPoint(of: Self.address, "d", "s") == OplogID(1))
    }

    @Test("a jump of the database's clock ends no lease") func clockJump() {
        var store = Self.store(isMultiDevice: true).store
        func renew(_ epoch: Int64, at now: WallTime) -> Int64 {
            let command = SessionStoreCommand.renewLease(gatewayID: "g", epoch: epoch, controlVersion: 1, sessions: 0)
            guard case .lease(let lease) = store.perform(command, at: now) else { return 0 }
            return lease.epoch
        }
        let epoch = renew(0, at: Self.now)
        let renewed = renew(epoch, at: Self.now + Limits.gatewayLease + .seconds(2))
        #expect(epoch > 0 && renewed == epoch)
    }
}
