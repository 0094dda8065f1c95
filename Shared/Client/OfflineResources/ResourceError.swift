/// The error that the calls of `ResourceClient` throw.
public struct ResourceError: Error, Sendable, CustomStringConvertible {
    /// The kind of an error. Later versions of the library can add codes, so a `switch` needs a default.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The stable name of the code.
        public let rawValue: String
        /// Makes a code from any name; unknown names are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// An argument or a value of the configuration is wrong; correct it.
        public static let invalidArgument = Code(rawValue: "invalidArgument")
        /// The policy file is invalid; the message has the place.
        public static let policyFile = Code(rawValue: "policyFile")
        /// The store cannot be opened, read or written.
        public static let store = Code(rawValue: "store")
        /// The store is encrypted with another key, or the cipher is missing.
        public static let storeKey = Code(rawValue: "storeKey")
        /// `maxStoreSize` does not allow another edit; the edit is not stored.
        public static let storeFull = Code(rawValue: "storeFull")
        /// The backend cannot be reached and the update policy does not allow queueing; the edit is not stored.
        public static let offline = Code(rawValue: "offline")
        /// The backend may have applied the edit, but no response arrived and the update policy does not allow
        /// queueing. Reload the resource.
        public static let noAnswer = Code(rawValue: "noAnswer")
        /// The backend refused the request; `status` has the HTTP status.
        public static let refused = Code(rawValue: "refused")
        /// The backend did not accept the credentials. Sign in and give `ResourceTransport` new credentials.
        public static let signInNeeded = Code(rawValue: "signInNeeded")
        /// The backend's response cannot be used, for example because it is too long.
        public static let answer = Code(rawValue: "answer")
        /// The body of a resource is not a value of the requested type; the message has the member.
        public static let decoding = Code(rawValue: "decoding")
        /// A local file of a transfer cannot be read or written.
        public static let file = Code(rawValue: "file")
        /// The backend has another version than the one that the upload is based on, and keeps it.
        public static let conflict = Code(rawValue: "conflict")
        /// A push has an invalid payload; nothing of it was applied.
        public static let push = Code(rawValue: "push")
        /// There is no local copy.
        public static let notCached = Code(rawValue: "notCached")
        /// The resource has no conflict.
        public static let noConflict = Code(rawValue: "noConflict")
        /// Another user was bound during the call. The result is stored for the former user.
        public static let userChanged = Code(rawValue: "userChanged")
        /// The calling task was cancelled.
        public static let cancelled = Code(rawValue: "cancelled")
        /// `run()` is already running.
        public static let alreadyRunning = Code(rawValue: "alreadyRunning")
    }

    /// The kind of the error.
    public let code: Code
    /// The failure, its object and the remedy, in English.
    public let message: String
    /// The HTTP status of the backend, with `refused` and `signInNeeded`.
    public let status: Int?

    init(_ code: Code, _ message: String, status: Int? = nil) {
        self.code = code
        self.message = message
        self.status = status
    }

    public var description: String { "\(code.rawValue): \(message)" }
}
