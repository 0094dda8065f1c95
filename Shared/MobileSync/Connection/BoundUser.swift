import SyncModel

/// The user an app has bound, and the session that proves it.
struct BoundUser: Equatable, Sendable {
    let userID: String
    let sessionID: String
    /// The number of the app's call that binds; nil once a gateway has said that this device owns the user's
    /// single-device data. Binds are equal whatever it is.
    var request: UInt64?
    /// Under which the device became the owner, as that gateway said; 0 while `request` is not nil.
    var ownershipEpoch: Int64 = 0

    /// The device owns the user.
    mutating func settle(epoch: Int64) {
        request = nil
        ownershipEpoch = epoch
    }

    static func == (left: BoundUser, right: BoundUser) -> Bool {
        left.userID.isSame(as: right.userID) && left.sessionID.isSame(as: right.sessionID)
    }
}
