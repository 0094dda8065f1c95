/// What happens to the user's store (spec, two-way §3: will resign, updated, renewed).
public enum UserStoreEvent: Sendable, Hashable {
    /// Another user has signed in; until this returns, the store is the last one's still.
    case willResign(userID: String)
    /// From now on the store is this user's.
    case updated(userID: String)
    /// The same user has signed in again; the store stays.
    case renewed(userID: String)
}
