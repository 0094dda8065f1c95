/// A stored row of an entity type.
struct StoredRow: Sendable, Hashable {
    /// The key in the form of oplogs and operations.
    let key: String
    /// The attributes that the app sees: the edit, or the server's version when there is no edit.
    var fields: [String: AttributeValue]
    var state: PendingState
    /// The server's version while there is an edit; nil: there is none, or `fields` is the server's version.
    var original: [String: AttributeValue]?
    /// The server's counter of its last known version.
    var serverCounter: Int64?
    /// The server's counter of the version that the edit is based on. The backend detects conflicts with it.
    var baseCounter: Int64?
    /// The operation in flight.
    var operationID: String?
    /// The order in which pending rows are submitted: it rises with each first change of a row, over all types.
    var changeOrder: Int64 = 0

    /// The server's last known version.
    var serverFields: [String: AttributeValue]? {
        state.ownChange == .nothing ? (state.isOnServer ? fields : nil) : original
    }

    /// Starts an edit: stores the server's version as the original.
    mutating func beginEdit(order: Int64) {
        guard state.ownChange == .nothing else { return }
        original = state.isOnServer ? fields : nil
        baseCounter = serverCounter
        changeOrder = order
    }

    /// Ends an edit: `fields` is the server's version.
    mutating func endEdit() {
        original = nil
        baseCounter = nil
        operationID = nil
        changeOrder = 0
    }
}
