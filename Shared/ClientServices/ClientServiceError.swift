/// Why a client service cannot do what was asked.
public struct ClientServiceError: Error, Sendable, CustomStringConvertible {
    /// What kind of error it is; later versions may have more.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's stable name.
        public let rawValue: String
        /// Any name; unknown ones are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// An argument is wrong; correct it.
        public static let invalidArgument = Code(rawValue: "invalidArgument")
        /// A file cannot be opened, read or written; nothing of the call has been done. May succeed when tried again.
        public static let store = Code(rawValue: "store")
        /// The store was encrypted with another key, or with one where none is given.
        public static let storeKey = Code(rawValue: "storeKey")
        /// What is stored under this key is of another type.
        public static let wrongType = Code(rawValue: "wrongType")
        /// It is for a user, and nobody has ever signed in.
        public static let noUser = Code(rawValue: "noUser")
        /// `run()` is already at work.
        public static let alreadyRunning = Code(rawValue: "alreadyRunning")
        /// The service has not answered. May succeed when tried again.
        public static let unanswered = Code(rawValue: "unanswered")
    }

    /// What kind of error it is.
    public let code: Code
    /// What happened, to what, and what to do.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { "\(code.rawValue): \(message)" }
}
