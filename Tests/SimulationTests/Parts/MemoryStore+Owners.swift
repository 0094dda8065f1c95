import SyncModel
import SyncStore

// The owners of users (D8), by the rules of the SQL function register_session.
extension MemoryStore {
    /// The stored owner of a user.
    struct Owner: Equatable {
        let deviceID: DeviceID
        /// The ownership epoch; it rises with every change.
        let epoch: Int64
    }

    /// The device that owns a user, for checks.
    func owner(of userID: UserID, in instanceID: InstanceID) -> DeviceID? {
        owners[UserKey(instanceID: instanceID, userID: userID)]?.deviceID
    }

    func owner(for registration: DeviceSessionStore.Registration) -> Owner? {
        registration.userID.flatMap { owners[UserKey(instanceID: registration.instanceID, userID: $0)] }
    }

    func owns(_ registration: DeviceSessionStore.Registration) -> Bool {
        owner(for: registration)?.deviceID == registration.deviceID
    }

    /// Makes the registration's device the owner, if it may be.
    ///
    /// - Returns: whether the device became the owner.
    mutating func takeOwnership(for registration: DeviceSessionStore.Registration) -> Bool {
        let before = owner(for: registration)
        guard let userID = registration.userID, before?.deviceID != registration.deviceID,
            registration.verdictMilliseconds > 0 || !checksOwners(of: registration.instanceID)
        else { return false }
        let key = UserKey(instanceID: registration.instanceID, userID: userID)
        if registration.takesOwnership {
            presenceEpoch += 1
            owners[key] = Owner(deviceID: registration.deviceID, epoch: presenceEpoch)
            return true
        }
        if registration.ownershipEpoch > before?.epoch ?? 0, registration.ownershipEpoch <= presenceEpoch {
            owners[key] = Owner(deviceID: registration.deviceID, epoch: registration.ownershipEpoch)
            return true
        }
        return false
    }
}
