/// One part of a submission, as the store keeps it until it is answered.
struct PendingOperation: Sendable, Hashable {
    /// What an answer is for.
    enum Kind: String, Sendable {
        /// A row's change.
        case create = "C"
        case update = "U"
        case delete = "D"
        /// Only carries children.
        case parent = "P"
        /// An operation of the app's own.
        case other = "O"
        /// Log records of this device.
        case logRecords = "L"
    }

    let id: String
    let rootID: String
    let parentID: String?
    let component: String
    /// Of the entity; empty when it is about none.
    let key: String
    let name: String
    let kind: Kind
    let body: [UInt8]

    /// Where a sealed body stands.
    static func bodyPlace(_ id: String) -> String { "operation/\(id)" }
}
