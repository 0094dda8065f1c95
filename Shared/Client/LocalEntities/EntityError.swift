import GRDB

/// The error that the calls of an entity store throw.
public struct EntityError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of an error. Later versions of the library can add codes, so a `switch` needs a default. The first
    /// seven are those of the Client Object API (ENT5).
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The stable name of the code.
        public let rawValue: String
        /// Makes a code from any name; unknown names are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// No entity type with this name is declared, or the type is local only.
        public static let noSuchClass = Code(rawValue: "noSuchClass")
        /// The entity type has no attribute or relationship with this name.
        public static let noSuchAttribute = Code(rawValue: "noSuchAttribute")
        /// The operation has no parameter with this name.
        public static let noSuchParameter = Code(rawValue: "noSuchParameter")
        /// The entity type has no operation with this name.
        public static let noSuchOperation = Code(rawValue: "noSuchOperation")
        /// A value has another type than declared, is null where null is not allowed, or a comparison does not apply to
        /// its type.
        public static let wrongDataType = Code(rawValue: "wrongDataType")
        /// The row does not exist or is already deleted.
        public static let objectNotFound = Code(rawValue: "objectNotFound")
        /// The file cannot be opened, read or written, it is full, or its content does not allow the change.
        public static let persistence = Code(rawValue: "persistence")

        /// The declaration is contradictory; correct it.
        public static let invalidDeclaration = Code(rawValue: "invalidDeclaration")
        /// An argument is not in its range.
        public static let invalidArgument = Code(rawValue: "invalidArgument")
        /// The store is encrypted with another key, or a key is missing.
        public static let storeKey = Code(rawValue: "storeKey")
        /// The store belongs to another user; use another path.
        public static let foreignStore = Code(rawValue: "foreignStore")
        /// The operations are stored, but the submitter did not accept them. They are submitted with the next call or
        /// start.
        public static let submission = Code(rawValue: "submission")
        /// The versions of a conflict are no longer those that the decision is about. Decide again with `conflict(of:)`.
        public static let conflictChanged = Code(rawValue: "conflictChanged")
        /// All keys that the server granted are used; request more while there is a connection.
        public static let keysExhausted = Code(rawValue: "keysExhausted")
        /// The vault is locked, the PIN is wrong, or the key was destroyed after too many wrong PINs.
        public static let vault = Code(rawValue: "vault")
    }

    /// The kind of the error.
    public let code: Code
    /// The failure, its object and the remedy, in English. It has names but no values of attributes.
    public let message: String
    /// The store had no space for the change.
    let isStoreFull: Bool

    init(_ code: Code, _ message: String, isStoreFull: Bool = false) {
        self.code = code
        self.message = message
        self.isStoreFull = isStoreFull
    }

    public var description: String { "\(code.rawValue): \(message)" }

    /// Converts an error of another module to an error of the step.
    static func wrapping(_ error: any Error, _ step: String) -> EntityError {
        if let error = error as? EntityError { return error }
        guard (error as? DatabaseError)?.resultCode != .SQLITE_FULL else {
            return EntityError(
                .persistence, "\(step) failed because the store is full; delete data, or raise storeLimit",
                isStoreFull: true)
        }
        return EntityError(.persistence, "\(step) failed (\(error)); check space and permissions")
    }
}
