/// One part of a submission, stored until its result arrives.
struct PendingOperation: Sendable, Hashable {
    /// The kind of the operation, which decides how its result is applied.
    enum Kind: String, Sendable {
        /// A row's change.
        case create = "C"
        case update = "U"
        case delete = "D"
        /// Only contains children.
        case parent = "P"
        /// An operation that the app performed.
        case other = "O"
        /// Log records of this device.
        case logRecords = "L"
    }

    let id: String
    let rootID: String
    let parentID: String?
    let component: String
    /// The row's key; empty when the operation concerns no row.
    let key: String
    let name: String
    let kind: Kind
    let body: [UInt8]

    /// The context with which a body is encrypted.
    static func bodyPlace(_ id: String) -> String { "operation/\(id)" }
}
