import SyncModel

/// The user that the app has bound, with the user session.
struct BoundUser: Equatable, Sendable {
    let userID: String
    let sessionID: String
    /// The number of the app's bind call. The value is nil after a gateway has confirmed the ownership that the call
    /// requested.
    /// Equality ignores it.
    var request: UInt64?
    /// The ownership epoch that the gateway reported; 0 while `request` is not nil.
    var ownershipEpoch: Int64 = 0

    /// Records that this device owns the user's single-device data.
    mutating func recordOwnership(epoch: Int64) {
        request = nil
        ownershipEpoch = epoch
    }

    static func == (left: BoundUser, right: BoundUser) -> Bool {
        left.userID.isSame(as: right.userID) && left.sessionID.isSame(as: right.sessionID)
    }
}
