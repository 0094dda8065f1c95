import SyncModel

/// The right that a route requires. `RequestAuthorization` checks it for every route (SEC14).
enum Access: Hashable, Sendable {
    /// Everyone, also before the sign-in.
    case open
    /// Any signed-in account.
    case signedIn
    /// An account with at least this role at the instance of the path.
    case instance(ConsoleRole)
    /// An account with at least this role for the whole service.
    case service(ConsoleRole)

    /// Whether an account has the right.
    ///
    /// - Parameters:
    ///   - account: nil when no account is signed in.
    ///   - instance: the instance of the path; nil when the path names none.
    func allows(_ account: ConsoleAccount?, instance: InstanceID?) -> Bool {
        switch self {
        case .open: true
        case .signedIn: account != nil
        case .instance(let role): (instance.flatMap { account?.role(at: $0) }).map { $0 >= role } ?? false
        case .service(let role): account?.grants[ConsoleAccount.everyInstance].map { $0 >= role } ?? false
        }
    }

    /// The right in words, for the API's description; translated in `sentences.json`.
    var words: String {
        switch self {
        case .open: "everyone"
        case .signedIn: "any signed-in account"
        case .instance(let role): "\(role.word) of the instance"
        case .service(let role): "\(role.word) of the service"
        }
    }
}
