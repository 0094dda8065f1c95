import SyncModel
import SyncStore

// Which device of a user receives single-device data (spec D8), as the function register_session keeps it.
extension MemoryStore {
    /// A user's owner on record.
    struct Owner: Equatable {
        let deviceID: DeviceID
        /// Under which it became the owner; it rises with every change.
        let epoch: Int64
    }

    /// The device that owns a user, for who checks.
    func owner(of userID: UserID, in instanceID: InstanceID) -> DeviceID? {
        owners[UserKey(instanceID: instanceID, userID: userID)]?.deviceID
    }

    func owner(for registration: DeviceSessionStore.Registration) -> Owner? {
        registration.userID.flatMap { owners[UserKey(instanceID: registration.instanceID, userID: $0)] }
    }

    func owns(_ registration: DeviceSessionStore.Registration) -> Bool {
        owner(for: registration)?.deviceID == registration.deviceID
    }

    /// A registration makes its device the owner, if it may.
    ///
    /// - Returns: whether it did.
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
            #if KNOWN_BAD
                if KnownBad.givenOwnershipForgotten.isOn { return false }
            #endif
            owners[key] = Owner(deviceID: registration.deviceID, epoch: registration.ownershipEpoch)
            return true
        }
        return false
    }
}
