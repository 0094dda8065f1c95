/// The error that the calls of the client services throw.
public struct ClientServiceError: Error, Sendable, CustomStringConvertible {
    /// The kind of an error. Later versions of the library can add codes, so a `switch` needs a default.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The stable name of the code.
        public let rawValue: String
        /// Makes a code from any name; unknown names are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// An argument is wrong; correct it.
        public static let invalidArgument = Code(rawValue: "invalidArgument")
        /// A file cannot be opened, read or written. The failed call changed nothing; a retry can succeed.
        public static let store = Code(rawValue: "store")
        /// The store is encrypted with another key, or a key is missing.
        public static let storeKey = Code(rawValue: "storeKey")
        /// The stored value has another type than the requested one.
        public static let wrongType = Code(rawValue: "wrongType")
        /// The call needs a user, and no user has ever signed in.
        public static let noUser = Code(rawValue: "noUser")
        /// `run()` is already running.
        public static let alreadyRunning = Code(rawValue: "alreadyRunning")
        /// The service has not answered. A retry can succeed.
        public static let unanswered = Code(rawValue: "unanswered")
    }

    /// The kind of the error.
    public let code: Code
    /// The failure, its object and the remedy, in English.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { "\(code.rawValue): \(message)" }
}
