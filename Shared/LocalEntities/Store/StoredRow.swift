/// One row of an entity type as the store has it.
struct StoredRow: Sendable, Hashable {
    /// As oplogs and operations write it.
    let key: String
    /// What the app sees: the edit, or the server's version when there is none.
    var fields: [String: AttributeValue]
    var state: PendingState
    /// The server's version while there is an edit; nil: there is none, or the fields are it.
    var original: [String: AttributeValue]?
    /// The server's counter of the version that the server had last.
    var serverCounter: Int64?
    /// The server's counter of the version that the edit began with, by which a backend finds conflicts.
    var baseCounter: Int64?
    /// The operation that is on its way.
    var operationID: String?
    /// Rises with each first change of a row, over all types: the order in which all are submitted.
    var changeOrder: Int64 = 0

    /// The server's version that is known here.
    var serverFields: [String: AttributeValue]? {
        state.ownChange == .nothing ? (state.isOnServer ? fields : nil) : original
    }

    /// Keeps the server's version, as an edit begins.
    mutating func beginEdit(order: Int64) {
        guard state.ownChange == .nothing else { return }
        original = state.isOnServer ? fields : nil
        baseCounter = serverCounter
        changeOrder = order
    }

    /// Nothing is pending any more: the fields are the server's.
    mutating func endEdit() {
        original = nil
        baseCounter = nil
        operationID = nil
        changeOrder = 0
    }
}
