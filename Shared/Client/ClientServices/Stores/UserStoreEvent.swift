/// A change of the user's store (SVC3: will resign, updated, renewed).
public enum UserStoreEvent: Sendable, Hashable {
    /// Another user is about to sign in. Until the handler returns, `UserStores.user` is still the store of this user.
    case willResign(userID: String)
    /// `UserStores.user` is the store of this user from now on.
    case updated(userID: String)
    /// The same user has signed in again; the store stays.
    case renewed(userID: String)
}
