import SyncModel

/// Who may use a route: every route states one, and it is asked in one place (reliability SEC14).
enum Access: Hashable, Sendable {
    /// Everybody, before the sign-in.
    case open
    /// Whoever is signed in.
    case signedIn
    /// Whoever has this role or a higher one at the instance of the path.
    case instance(ConsoleRole)
    /// Whoever has this role or a higher one for the service as a whole.
    case service(ConsoleRole)

    /// Whether an account may; nil: nobody is signed in.
    ///
    /// - Parameter instance: the instance of the path, when it names one.
    func allows(_ account: ConsoleAccount?, instance: InstanceID?) -> Bool {
        switch self {
        case .open: true
        case .signedIn: account != nil
        case .instance(let role): (instance.flatMap { account?.role(at: $0) }).map { $0 >= role } ?? false
        case .service(let role): account?.grants[ConsoleAccount.everyInstance].map { $0 >= role } ?? false
        }
    }

    /// For the API's description.
    var words: String {
        switch self {
        case .open: "everybody"
        case .signedIn: "whoever is signed in"
        case .instance(let role): "\(role.word) of the instance"
        case .service(let role): "\(role.word) of the service"
        }
    }
}
