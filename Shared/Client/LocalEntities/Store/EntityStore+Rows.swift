/// Rows with attributes by name.
extension EntityStore {
    /// Makes a row that is not stored yet; all its attributes are null.
    ///
    /// - Throws: `EntityError.noSuchClass`.
    public func makeEntity(_ typeName: String) throws(EntityError) -> Entity { Entity(new: try schema.type(typeName)) }

    /// Stores a new row and its children; it is pending until the server has accepted it.
    ///
    /// - Throws: `EntityError`: `wrongDataType`; `persistence` when a row with this key exists.
    public func create(_ entity: inout Entity) throws(EntityError) {
        entity = try changed(entity, "creating") { transaction, entity throws(EntityError) in
            try transaction.create(&entity)
        }
    }

    /// Stores the changes that were made in memory, and the children. Unchanged attributes keep their stored values.
    ///
    /// - Throws: `EntityError`: `objectNotFound`, `wrongDataType`, `persistence` for a changed key.
    public func update(_ entity: inout Entity) throws(EntityError) {
        entity = try changed(entity, "updating") { transaction, entity throws(EntityError) in
            try transaction.update(&entity)
        }
    }

    /// Deletes a row and its children. They are pending until the server has accepted it; rows that the server has
    /// never received are removed at once.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func delete(_ entity: inout Entity) throws(EntityError) {
        entity = try changed(entity, "deleting") { transaction, entity throws(EntityError) in
            try transaction.delete(&entity)
        }
    }

    /// Creates a new row or updates a changed one, and does the same with its children.
    ///
    /// - Throws: as `create` and `update`.
    public func save(_ entity: inout Entity) throws(EntityError) {
        entity = try changed(entity, "saving") { transaction, entity throws(EntityError) in
            try transaction.save(&entity)
        }
    }

    /// Replaces the values and state in memory by the stored ones.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func refresh(_ entity: inout Entity) throws(EntityError) {
        let before = entity
        entity = try read("refreshing") { transaction in
            var entity = before
            try transaction.refresh(&entity)
            return entity
        }
    }

    /// Returns the server's last known version of a pending row; nil when it has none.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func original(of entity: Entity) throws(EntityError) -> Entity? {
        try read("reading the original") { try $0.original(of: entity) }
    }

    private func changed(
        _ entity: Entity, _ step: String,
        _ body: (EntityTransaction, inout Entity) throws(EntityError) -> Void
    ) throws(EntityError) -> Entity {
        try write(step) { transaction in
            var changed = entity
            try body(transaction, &changed)
            return changed
        }
    }

    // MARK: Pending

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
        try write("submitting all") { try $0.submissions.submitAll(group: group) }
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
            if let row = try transaction.canceller.cancel(before) {
                entity.load(row)
            } else {
                entity.markRemoved(.localOnly)
            }
            return entity
        }
        try await sender.send()
    }

    /// Cancels all pending changes and the operations that the app performed.
    ///
    /// - Parameter group: only types of this group; nil: all types.
    /// - Throws: as `cancelPending`.
    public func cancelPendingOperations(_ group: String? = nil) async throws(EntityError) {
        try write("cancelling all") { try $0.canceller.cancelAll(group: group) }
        try await sender.send()
    }

    /// Whether there are changes or operations without a result, submitted or not.
    ///
    /// - Parameter group: only types of this group; nil: all types.
    /// - Throws: `EntityError.persistence`.
    public func hasPendingOperations(_ group: String? = nil) throws(EntityError) -> Bool {
        try read("looking for pending operations") { transaction in
            try schema.synchronised(group: group).contains { type in
                try transaction.rows.hasPendingRows(of: type) || transaction.operations.hasCalls(of: type.name)
            }
        }
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

    // MARK: Queries

    /// Returns the rows of a query.
    ///
    /// - Throws: `EntityError`: `noSuchClass`, `noSuchAttribute`, `wrongDataType`, `invalidArgument`, `persistence`.
    public func findWithQuery(_ query: EntityQuery) throws(EntityError) -> [Entity] {
        try read("finding") { try $0.findWithQuery(query) }
    }

    /// Returns the rows of a type that fulfil a condition.
    ///
    /// - Throws: as `findWithQuery`.
    public func find(_ typeName: String, _ condition: EntityCondition) throws(EntityError) -> [Entity] {
        try findWithQuery(EntityQuery(typeName).where(condition))
    }

    /// Returns the number of rows that `findWithQuery` would return.
    ///
    /// - Throws: as `findWithQuery`.
    public func countWithQuery(_ query: EntityQuery) throws(EntityError) -> Int {
        try read("counting") { try $0.countWithQuery(query) }
    }

    /// Returns the columns of a query.
    ///
    /// - Throws: as `findWithQuery`.
    public func executeQuery(_ query: EntityQuery) throws(EntityError) -> QueryResult {
        try read("querying") { try $0.executeQuery(query) }
    }

    /// Returns the row with a key; nil when there is none or it is deleted.
    ///
    /// - Throws: `EntityError`: `noSuchClass`, `wrongDataType`, `persistence`.
    public func findByPrimaryKey(_ typeName: String, _ key: AttributeValue) throws(EntityError) -> Entity? {
        try read("finding by key") { try $0.findByPrimaryKey(typeName, key) }
    }

    /// Returns all rows of a type in the order of their insertion.
    ///
    /// - Throws: as `findWithQuery`.
    public func findAll(_ typeName: String, skip: Int = 0, take: Int? = nil) throws(EntityError) -> [Entity] {
        try read("finding all") { try $0.findAll(typeName, skip: skip, take: take) }
    }

    /// Returns a row's children, except deleted ones.
    ///
    /// - Throws: `EntityError`: `noSuchAttribute`, `persistence`.
    public func children(of entity: Entity, _ relationship: String) throws(EntityError) -> [Entity] {
        try read("finding children") { try $0.children(of: entity, relationship) }
    }
}
