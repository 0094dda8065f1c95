import SyncModel

/// The user an app has bound, and the session that proves it.
struct BoundUser: Equatable, Sendable {
    let userID: String
    let sessionID: String

    static func == (left: BoundUser, right: BoundUser) -> Bool {
        left.userID.isSame(as: right.userID) && left.sessionID.isSame(as: right.sessionID)
    }
}
