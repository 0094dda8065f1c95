import GRDB

/// An error of the client library.
public struct SyncError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error. Later versions can add codes.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The stable name of the code.
        public let rawValue: String
        /// Creates a code. Unknown names are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// An argument or a configuration value is invalid. Correct it and call again.
        public static let invalidArgument = Code(rawValue: "invalidArgument")
        /// The file of the certificate authority, or of the device's certificate, cannot be read.
        public static let trust = Code(rawValue: "trust")
        /// The gateway's certificate is not signed by the expected authority, has expired, or is for another name. The
        /// message names the expected authority.
        public static let certificate = Code(rawValue: "certificate")
        /// The local store cannot be opened, read or written. Check the disk space and the access rights.
        public static let store = Code(rawValue: "store")
        /// The disk is full, or the local store is at `SyncClientConfiguration.storeLimit`. Nothing of the step was
        /// stored or acknowledged. Free space, or confirm oplogs, and call again.
        public static let storeFull = Code(rawValue: "storeFull")
        /// The local store was encrypted with another key, or no key was given for an encrypted store.
        public static let storeKey = Code(rawValue: "storeKey")
        /// The gateway does not give this data to this device and user now.
        public static let notEligible = Code(rawValue: "notEligible")
        /// The login failed: the password is wrong, no good login is known on this device, the gateway has refused the
        /// user, or it has not answered in time.
        public static let login = Code(rawValue: "login")
        /// A call was not sent in time, and will not be sent: the backend does not execute it. Check the network, and
        /// call again.
        public static let notSent = Code(rawValue: "notSent")
        /// A call was sent, but its answer has not come in time: the backend may or may not execute it. Call again with
        /// the same operation to get the answer.
        public static let unknownOutcome = Code(rawValue: "unknownOutcome")
        /// The local store belongs to another instance or device. Use another path.
        public static let foreignStore = Code(rawValue: "foreignStore")
        /// Another process, or another client in this process, uses the store. One client can use a store at a time.
        /// End the `run()` of the other client.
        public static let storeInUse = Code(rawValue: "storeInUse")
        /// `run()` of this client is already active.
        public static let alreadyRunning = Code(rawValue: "alreadyRunning")
        /// The gateway does not allow automatic reconnects. `closeCode` has the reason. Call `run()` again after the
        /// cause is removed.
        public static let closedForGood = Code(rawValue: "closedForGood")
    }

    /// The kind of the error.
    public let code: Code
    /// A text for developers: the event, the affected object and the remedy.
    public let message: String
    /// The gateway's close code when `code` is `closedForGood`; otherwise nil.
    public let closeCode: UInt32?

    init(_ code: Code, _ message: String, closeCode: UInt32? = nil) {
        self.code = code
        self.message = message
        self.closeCode = closeCode
    }

    /// The failure of a step on the local store.
    init(step: String, _ error: any Error) {
        if let error = error as? SyncError {
            self = error
        } else if let error = error as? DatabaseError, error.resultCode == .SQLITE_FULL {
            self.init(.storeFull, "\(step) failed (\(error)): free space on the disk")
        } else {
            self.init(.store, "\(step) failed (\(error)); check space and access rights of the store")
        }
    }

    public var description: String { "\(code.rawValue): \(message)" }
}
