/// The user an app has bound, and the session that proves it.
struct BoundUser: Hashable, Sendable {
    let userID: String
    let sessionID: String
}
