/// Why the client cannot do what was asked.
public struct SyncError: Error, Sendable, CustomStringConvertible {
    /// What kind of error it is; later versions may have more.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's stable name.
        public let rawValue: String
        /// Any name; unknown ones are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A value in the configuration or an argument is wrong; correct it.
        public static let invalidArgument = Code(rawValue: "invalidArgument")
        /// The certificate authority's file cannot be read.
        public static let trust = Code(rawValue: "trust")
        /// The local store cannot be opened, read or written.
        public static let store = Code(rawValue: "store")
        /// The local store was encrypted with another key, or with one where none is given.
        public static let storeKey = Code(rawValue: "storeKey")
        /// The gateway does not give this data to this device and user now.
        public static let notEligible = Code(rawValue: "notEligible")
        /// The store belongs to another instance or device; use another path.
        public static let foreignStore = Code(rawValue: "foreignStore")
        /// Another process, or another client of this one, uses the store: one client at a time may. End the
        /// `run()` of the other client.
        public static let storeInUse = Code(rawValue: "storeInUse")
        /// `run()` is already at work.
        public static let alreadyRunning = Code(rawValue: "alreadyRunning")
        /// The gateway forbids this client to come back by itself; `closeCode` says why.
        public static let closedForGood = Code(rawValue: "closedForGood")
    }

    /// What kind of error it is.
    public let code: Code
    /// What happened, to what, and what to do.
    public let message: String
    /// The gateway's close code, with `closedForGood`.
    public let closeCode: UInt32?

    init(_ code: Code, _ message: String, closeCode: UInt32? = nil) {
        self.code = code
        self.message = message
        self.closeCode = closeCode
    }

    public var description: String { "\(code.rawValue): \(message)" }
}
