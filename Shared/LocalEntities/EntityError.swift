import GRDB

/// Why an entity store cannot do what was asked.
public struct EntityError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What kind of error it is; later versions may have more. The first seven are the neighbour's (spec, two-way §2).
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's stable name.
        public let rawValue: String
        /// Any name; unknown ones are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// No entity type of this name is declared, or no relationship leads to one.
        public static let noSuchClass = Code(rawValue: "noSuchClass")
        /// The entity type has no attribute or relationship of this name.
        public static let noSuchAttribute = Code(rawValue: "noSuchAttribute")
        /// The operation has no parameter of this name.
        public static let noSuchParameter = Code(rawValue: "noSuchParameter")
        /// The entity type has no operation of this name.
        public static let noSuchOperation = Code(rawValue: "noSuchOperation")
        /// A value is of another type than declared, null where none may be, or a test does not go with the type.
        public static let wrongDataType = Code(rawValue: "wrongDataType")
        /// The row is not there, or is deleted already.
        public static let objectNotFound = Code(rawValue: "objectNotFound")
        /// The file cannot be opened, read or written, is full, or what it holds forbids the change.
        public static let persistence = Code(rawValue: "persistence")

        /// The declaration contradicts itself; correct it.
        public static let invalidDeclaration = Code(rawValue: "invalidDeclaration")
        /// An argument is out of its range.
        public static let invalidArgument = Code(rawValue: "invalidArgument")
        /// The store was encrypted with another key, or with one where none is given.
        public static let storeKey = Code(rawValue: "storeKey")
        /// The store belongs to another user; use another path.
        public static let foreignStore = Code(rawValue: "foreignStore")
        /// The operations are on the disk and could not be given to the submitter; they go with the next call or start.
        public static let submission = Code(rawValue: "submission")
        /// No key is left of what the server granted; ask for more while there is a connection.
        public static let keysExhausted = Code(rawValue: "keysExhausted")
        /// The vault is locked, the PIN is wrong, or too many were wrong.
        public static let vault = Code(rawValue: "vault")
    }

    /// What kind of error it is.
    public let code: Code
    /// What happened, to what, and what to do; names, but no values of attributes.
    public let message: String
    /// There was no room for what was to be written.
    let isStoreFull: Bool

    init(_ code: Code, _ message: String, isStoreFull: Bool = false) {
        self.code = code
        self.message = message
        self.isStoreFull = isStoreFull
    }

    public var description: String { "\(code.rawValue): \(message)" }

    /// The error of a step that failed for a reason that is not this module's.
    static func wrapping(_ error: any Error, _ step: String) -> EntityError {
        if let error = error as? EntityError { return error }
        guard (error as? DatabaseError)?.resultCode != .SQLITE_FULL else {
            return EntityError(
                .persistence, "\(step) failed, as the store is full: delete something, or allow more",
                isStoreFull: true)
        }
        return EntityError(.persistence, "\(step) failed (\(error)); check space and rights")
    }
}
