/// Lets the app decide about edits of rows that have changed on the server (ENT1).
struct ConflictResolver {
    private let context: TransactionContext
    private let rows: RowStore
    private let submissions: SubmissionBuilder
    private let logs: LogRecordStore

    init(context: TransactionContext) {
        self.context = context
        rows = RowStore(context: context)
        submissions = SubmissionBuilder(context: context)
        logs = LogRecordStore(context: context)
    }

    /// Applies the app's decision to a stored row with a conflict. Does nothing without a resolver, and while a change
    /// is in flight: the server decides about that one, and its result comes here.
    ///
    /// A change that the server had refused is submitted again. Each new version of the server is decided once, so a
    /// refusal for another reason is not repeated for ever.
    ///
    /// - Parameter mayResubmit: whether the row's last change was submitted before.
    func resolve(_ old: StoredRow, _ type: EntityType, mayResubmit: Bool = true) throws {
        guard let resolver = context.resolver, old.hasConflict, old.state.inFlight == nil,
            old.state.ownChange != .nothing
        else { return }
        let resolution: EntityConflict.Resolution
        do {
            resolution = try resolver(EntityConflict(old, type))
            if case .merged(let entity) = resolution { _ = try type.checked(entity.fields) }
        } catch {
            try logs.add(
                .refusedImport(
                    of: type.name, key: old.key,
                    EntityError(.persistence, "the conflict was not resolved (\(error)); the edit stays"),
                    at: context.now))
            return
        }
        let isRefused =
            mayResubmit && old.state.replayFailure > 0 && old.state.replayFailure == old.state.replayCounter
        guard let row = try apply(resolution, to: old, type), isRefused else { return }
        try submissions.submitFamily(of: row, type)
    }

    /// Applies a decision of the user to a stored row, and submits the rest of the edit.
    ///
    /// - Returns: the row; nil when it was removed.
    func decide(_ resolution: EntityConflict.Resolution, _ old: StoredRow, _ type: EntityType) throws -> StoredRow? {
        if let decided = try apply(resolution, to: old, type) {
            var row = decided
            if row.state.inFlight != nil, row.state.replayCounter == row.state.replayPending, row.state.update() {
                // The decision is a further change, which is sent after the result of the change in flight.
                try rows.write(&row, of: type, replacing: decided)
            }
            try submissions.submitFamily(of: row, type)
        }
        return try rows.stored(type.name, old.key)
    }

    /// - Returns: the row with its edit; nil when no edit is left.
    private func apply(
        _ resolution: EntityConflict.Resolution, to old: StoredRow, _ type: EntityType
    ) throws -> StoredRow? {
        var row = old
        switch resolution {
        case .takeTheirs: return try dropEdit(of: &row, replacing: old, type)
        case .keepMine: break
        case .merged(let entity) where entity.isDeleted: break
        case .merged(let entity):
            row.fields = try type.checked(entity.fields)
            row.fields[type.keyAttribute] = old.fields[type.keyAttribute]
            if row.fields == row.original { return try dropEdit(of: &row, replacing: old, type) }
            if row.state.isRemoved { _ = row.state.recreate() } else { _ = row.state.update() }
        }
        row.rebase()
        if !row.state.isRemoved, row.fields == row.original { return try dropEdit(of: &row, replacing: old, type) }
        try rows.write(&row, of: type, replacing: old)
        return row
    }

    private func dropEdit(of row: inout StoredRow, replacing old: StoredRow, _ type: EntityType) throws -> StoredRow? {
        switch row.state.cancel() {
        case .restored:
            row.fields = row.original ?? row.fields
            row.endEdit()
            try rows.write(&row, of: type, replacing: old)
        case .rowRemoved, .nothing: try rows.remove(old, of: type)
        }
        return nil
    }
}
