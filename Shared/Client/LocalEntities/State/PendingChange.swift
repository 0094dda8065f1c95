/// A row's change that the server has not accepted. The letters are those of the Client Object API (ENT1).
public enum PendingChange: String, Sendable, Hashable, CaseIterable {
    /// The row was created here.
    case create = "C"
    /// The row was changed here.
    case update = "U"
    /// The row was deleted here.
    case delete = "D"
    /// Only children of the row have pending changes.
    case parent = "P"
    /// No pending change.
    case nothing = "N"

    /// The name of the operation that sends the change.
    var operationName: String {
        switch self {
        case .create: "create"
        case .update: "update"
        case .delete: "delete"
        case .parent, .nothing: "children"
        }
    }
}
