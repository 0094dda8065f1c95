/// What a row has that the server has not yet answered; the letters are the neighbour's (spec, two-way §2).
public enum PendingChange: String, Sendable, Hashable, CaseIterable {
    /// It was created here.
    case create = "C"
    /// It was changed here.
    case update = "U"
    /// It was deleted here.
    case delete = "D"
    /// Only children of it are pending.
    case parent = "P"
    /// Nothing.
    case nothing = "N"

    /// The operation that tells the backend.
    var operationName: String {
        switch self {
        case .create: "create"
        case .update: "update"
        case .delete: "delete"
        case .parent, .nothing: "children"
        }
    }
}
