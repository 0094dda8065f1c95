/// Why a resource cannot be given or changed.
public struct ResourceError: Error, Sendable, CustomStringConvertible {
    /// What kind of error it is; later versions may have more.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's stable name.
        public let rawValue: String
        /// Any name; unknown ones are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// An argument or a value of the configuration is wrong; correct it.
        public static let invalidArgument = Code(rawValue: "invalidArgument")
        /// The policy file is wrong; the message says where.
        public static let policyFile = Code(rawValue: "policyFile")
        /// The store cannot be opened, read or written.
        public static let store = Code(rawValue: "store")
        /// The store was sealed with another key, or with one where no cipher is given.
        public static let storeKey = Code(rawValue: "storeKey")
        /// `maxStoreSize` is reached, and an edit finds no room; nothing of it is kept.
        public static let storeFull = Code(rawValue: "storeFull")
        /// The service cannot be reached, and the edit is not to be queued; nothing of it is kept.
        public static let offline = Code(rawValue: "offline")
        /// An edit was sent that is not to be queued, and no answer came: it may have been applied. Reload it.
        public static let noAnswer = Code(rawValue: "noAnswer")
        /// The service refused; `status` says how.
        public static let refused = Code(rawValue: "refused")
        /// The service does not know who asks: sign in, and give `ResourceTransport` new credentials.
        public static let signInNeeded = Code(rawValue: "signInNeeded")
        /// The service's answer cannot be used, for example because it is too long.
        public static let answer = Code(rawValue: "answer")
        /// A push cannot be used; nothing of it was done.
        public static let push = Code(rawValue: "push")
        /// There is no local copy.
        public static let notCached = Code(rawValue: "notCached")
        /// The resource has no conflict.
        public static let noConflict = Code(rawValue: "noConflict")
        /// Another user was bound meanwhile: what came is kept for the former one, who gets it.
        public static let userChanged = Code(rawValue: "userChanged")
        /// The calling task was cancelled.
        public static let cancelled = Code(rawValue: "cancelled")
        /// `run()` is already at work.
        public static let alreadyRunning = Code(rawValue: "alreadyRunning")
    }

    /// What kind of error it is.
    public let code: Code
    /// What happened, to what, and what to do.
    public let message: String
    /// The service's HTTP status, with `refused` and `signInNeeded`.
    public let status: Int?

    init(_ code: Code, _ message: String, status: Int? = nil) {
        self.code = code
        self.message = message
        self.status = status
    }

    public var description: String { "\(code.rawValue): \(message)" }
}
