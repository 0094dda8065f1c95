/// What the present bind wants: that this device becomes the owner of the user's single-device data (spec D8); pure.
///
/// Ownership moves with a registration. Where owners are checked, that is one after the first valid verdict.
struct OwnershipClaim {
    /// The device is not the owner yet, as far as the store has said.
    private(set) var isOpen = false
    /// The registration that went out last takes it.
    var isAsked = false
    /// The app asked for the bind, so the device asks again on its next connection until it is told that it owns.
    private var tellsDevice = false

    /// - Parameters:
    ///   - isRequestedByApp: the app asked for the bind.
    ///   - latestConnectionOwns: the instance gives ownership to every bind.
    init(isRequestedByApp: Bool = false, latestConnectionOwns: Bool = false) {
        isOpen = isRequestedByApp || latestConnectionOwns
        tellsDevice = isRequestedByApp
    }

    /// The store says that this device owns the user.
    ///
    /// - Returns: whether the device is to be told.
    mutating func close() -> Bool {
        defer { self = OwnershipClaim() }
        return isOpen && tellsDevice
    }
}
