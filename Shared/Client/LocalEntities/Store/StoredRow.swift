/// A stored row of an entity type.
struct StoredRow: Sendable, Hashable {
    /// The key in the form of oplogs and operations.
    let key: String
    /// The attributes that the app sees: the edit, or the server's version when there is no edit.
    var fields: [String: AttributeValue]
    var state: PendingState
    /// The server's version while there is an edit; nil: there is none, or `fields` is the server's version.
    var original: [String: AttributeValue]?
    /// Whether an import has changed the server's version since the edit began.
    var hasConflict = false
    /// The server's version that the edit is based on; only while `hasConflict`, otherwise `original` is that version.
    /// The value is nil without such a version.
    var base: [String: AttributeValue]?
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
        changeOrder = order
        rebase()
    }

    /// Replaces the original by a later version of the server; nil: the server has deleted the row.
    mutating func replaceOriginal(by version: [String: AttributeValue]?) {
        guard version != original else { return }
        if !hasConflict { base = original }
        original = version
        hasConflict = version != base
        if !hasConflict { base = nil }
    }

    /// Makes the server's last known version the one that the edit is based on.
    mutating func rebase() {
        hasConflict = false
        base = nil
        baseCounter = serverCounter
    }

    /// Takes the attributes of the server's last known version that the edit leaves as they were in its base.
    mutating func takeTheirs() {
        guard hasConflict, let base, let original else { return }
        for (name, theirs) in original where fields[name] == base[name] { fields[name] = theirs }
    }

    /// Ends an edit: `fields` is the server's version.
    mutating func endEdit() {
        original = nil
        hasConflict = false
        base = nil
        baseCounter = nil
        operationID = nil
        changeOrder = 0
    }
}
