import MobileSync

/// Submitting and cancelling changes (ENT2).
extension EntityStore {
    /// Saves a row with its children, and submits it as `submitPending` does, in one transaction.
    ///
    /// - Throws: as `save` and `submitPending`. With `submission`, the row is saved.
    @concurrent
    public func saveAndSubmit(_ entity: inout Entity) async throws(EntityError) {
        let before = entity
        entity = try write("saving and submitting") { transaction in
            var entity = before
            try transaction.save(&entity)
            try transaction.submissions.submit(entity)
            try transaction.refresh(&entity)
            return entity
        }
        try await sender.send()
    }

    /// Submits the pending changes of a row, its parents and its children as one operation of the topmost parent.
    ///
    /// The operation is stored before the submitter is called, and reaches the server exactly once.
    ///
    /// - Throws: `EntityError`: `objectNotFound`; `persistence`; `submission`: the change is stored as submitted, and
    ///   is sent with the next call or start.
    public func submitPending(_ entity: inout Entity) async throws(EntityError) {
        let before = entity
        entity = try write("submitting") { transaction in
            try transaction.submissions.submit(before)
            var entity = before
            try transaction.refresh(&entity)
            return entity
        }
        try await sender.send()
    }

    /// Submits all pending changes in the order of the first change of each row.
    ///
    /// - Parameter group: only types of this group; nil: all types.
    /// - Throws: as `submitPending`.
    public func submitPendingOperations(_ group: String? = nil) async throws(EntityError) {
        try await submit(schema.synchronised(group: group))
    }

    /// Submits all pending changes of one type, in the order of the first change of each row. A child is submitted with
    /// its topmost parent.
    ///
    /// - Throws: as `submitPending`; `noSuchClass`.
    public func submitPendingOperations(of typeName: String) async throws(EntityError) {
        try await submit([schema.synchronised(typeName)])
    }

    private func submit(_ types: [EntityType]) async throws(EntityError) {
        try write("submitting all") { try $0.submissions.submitAll(of: types) }
        try await sender.send()
    }

    /// Cancels the pending changes of a row and its children. The server's version is restored; a row that the server
    /// has never received is removed (`isNew`). An operation that was already sent cannot be withdrawn; its effect
    /// arrives as an import.
    ///
    /// - Throws: `EntityError`: `objectNotFound`; `persistence`; `submission`: the change is cancelled here, and its
    ///   operation is withdrawn with the next call or start.
    public func cancelPending(_ entity: inout Entity) async throws(EntityError) {
        let before = entity
        entity = try write("cancelling") { transaction in
            var entity = before
            entity.load(try transaction.canceller.cancel(before))
            return entity
        }
        try await sender.send()
    }

    /// Ends the conflict of a row by a decision of the user, and submits the rest of the edit. The edit is then
    /// based on the server's version; the edits of children stay. `EntityStoreConfiguration.resolveConflict` decides
    /// without the user.
    ///
    /// - Parameter conflict: the conflict that the user has seen (`conflict(of:)`).
    /// - Throws: `EntityError`: `objectNotFound`; `conflictChanged`; `wrongDataType` for attributes that the type does
    ///   not allow; `persistence`; `submission`: the decision is stored, and is sent with the next call or start.
    public func resolve(
        _ entity: inout Entity, _ conflict: EntityConflict, _ resolution: EntityConflict.Resolution
    ) async throws(EntityError) {
        let before = entity
        entity = try write("resolving a conflict") { transaction in
            var entity = before
            let type = try transaction.schema.type(before.type.name)
            guard let old = try transaction.rows.stored(type.name, before.savedKey()) else {
                throw EntityError(.objectNotFound, "no row of \(type.name) has this key")
            }
            guard old.hasConflict, old.state.ownChange != .nothing,
                EntityConflict(old, type).hasSameVersions(as: conflict)
            else {
                throw EntityError(
                    .conflictChanged, "the row of \(type.name) has changed; decide again with conflict(of:)")
            }
            entity.load(
                resolution == .takeTheirs
                    ? try transaction.canceller.cancelOnly(old, type)
                    : try transaction.conflicts.decide(resolution, old, type))
            return entity
        }
        try await sender.send()
    }

    /// Cancels all pending changes and the operations that the app performed.
    ///
    /// - Parameter group: only types of this group; nil: all types.
    /// - Throws: as `cancelPending`.
    public func cancelPendingOperations(_ group: String? = nil) async throws(EntityError) {
        try await cancel(schema.synchronised(group: group))
    }

    /// Cancels all pending changes of one type and the operations that the app performed on it.
    ///
    /// - Throws: as `cancelPending`; `noSuchClass`.
    public func cancelPendingOperations(of typeName: String) async throws(EntityError) {
        try await cancel([schema.synchronised(typeName)])
    }

    private func cancel(_ types: [EntityType]) async throws(EntityError) {
        try write("cancelling all") { try $0.canceller.cancelAll(of: types) }
        try await sender.send()
    }

    /// Whether a request waits for the server: a submitted change, an operation of the app, submitted log records, a
    /// parameter of the kind `server`, or a request for keys.
    ///
    /// It is false for changes that were not submitted, and after each request has its result, accepted or refused. So
    /// a loop that waits until it is false ends. `pendingRows` has the rows with a change.
    ///
    /// - Parameter group: only types of this group, without log records and requests for keys; nil: everything.
    /// - Throws: `EntityError`: `persistence`; `submission` when the submitter cannot read its parameters.
    public func hasPendingOperations(_ group: String? = nil) throws(EntityError) -> Bool {
        let names = Set(schema.synchronised(group: group).map(\.name))
        guard group == nil else { return try isAwaited(names, parametersOf: names) }
        if keyRequests.isHeld { return true }
        return try isAwaited(names.union([LogRecordStore.component]), parametersOf: names)
    }

    /// Whether a request about one type waits for the server.
    ///
    /// - Throws: as `hasPendingOperations(_:)`; `noSuchClass`.
    public func hasPendingOperations(of typeName: String) throws(EntityError) -> Bool {
        let names: Set = [try schema.synchronised(typeName).name]
        return try isAwaited(names, parametersOf: names)
    }

    private func isAwaited(
        _ components: Set<String>, parametersOf typeNames: Set<String>
    ) throws(EntityError) -> Bool {
        if try read("looking for pending operations", { try $0.operations.isAwaited(of: components) }) { return true }
        return try sender.hasPendingParameters(of: typeNames)
    }

    /// Returns the rows of a type that are pending or have pending children, including deleted rows.
    ///
    /// - Throws: `EntityError`: `noSuchClass`, `persistence`.
    public func pendingRows(_ typeName: String) throws(EntityError) -> [Entity] {
        let type = try schema.type(typeName)
        return try read("reading pending rows") { transaction in
            try transaction.rows.pendingRows(of: type).map { Entity(type: type, row: $0) }
        }
    }

    /// Performs an operation of the app on the server. It is sent at once, or when there is a connection.
    ///
    /// - Parameters:
    ///   - key: the key of the row that the operation concerns; nil: no row.
    /// - Throws: `EntityError`: `noSuchOperation`, `noSuchParameter`, `wrongDataType`, `objectNotFound`; also as
    ///   `submitPending`.
    public func perform(
        _ operation: String, of typeName: String, key: AttributeValue? = nil,
        parameters: [String: AttributeValue] = [:]
    ) async throws(EntityError) {
        try write("performing \(operation)") {
            try $0.submissions.perform(operation, of: typeName, key: key, parameters)
        }
        try await sender.send()
    }
}
