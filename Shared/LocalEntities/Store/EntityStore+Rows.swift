/// Rows by their attributes' names.
extension EntityStore {
    /// A row that is not in the store yet, with null for every attribute.
    ///
    /// - Throws: `EntityError.noSuchClass`.
    public func makeEntity(_ typeName: String) throws(EntityError) -> Entity { Entity(new: try schema.type(typeName)) }

    /// Puts a new row, and its children, into the store; it is pending until the server has accepted it.
    ///
    /// - Throws: `EntityError`: `wrongDataType`, `persistence` when there is one of its key.
    public func create(_ entity: inout Entity) throws(EntityError) {
        entity = try changed(entity, "creating") { transaction, entity throws(EntityError) in
            try transaction.create(&entity)
        }
    }

    /// Writes what was changed in memory, and the children; of what was not, the store's values stay.
    ///
    /// - Throws: `EntityError`: `objectNotFound`, `wrongDataType`, `persistence` for a changed key.
    public func update(_ entity: inout Entity) throws(EntityError) {
        entity = try changed(entity, "updating") { transaction, entity throws(EntityError) in
            try transaction.update(&entity)
        }
    }

    /// Deletes a row and its children; they are pending until the server has accepted it, but for those that it has
    /// never heard of.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func delete(_ entity: inout Entity) throws(EntityError) {
        entity = try changed(entity, "deleting") { transaction, entity throws(EntityError) in
            try transaction.delete(&entity)
        }
    }

    /// Creates a new row, updates one that was changed in memory, and does the same with its children.
    ///
    /// - Throws: As `create` and `update`.
    public func save(_ entity: inout Entity) throws(EntityError) {
        entity = try changed(entity, "saving") { transaction, entity throws(EntityError) in
            try transaction.save(&entity)
        }
    }

    /// Takes the store's values and state in place of what is in memory.
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

    /// The server's version of a pending row, as far as it is known; nil: it has none.
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

    /// Submits a row's pending change with those of its parents and children, as one operation of its topmost parent.
    ///
    /// It is on the disk when the submitter is called, and goes up once, whatever happens.
    ///
    /// - Throws: `EntityError`: `objectNotFound`, `persistence`; `submission`: it is marked, and goes with the next
    ///   call or start.
    public func submitPending(_ entity: inout Entity) async throws(EntityError) {
        let before = entity
        entity = try write("submitting") { transaction in
            try transaction.submit(before)
            var entity = before
            try transaction.refresh(&entity)
            return entity
        }
        try await send()
    }

    /// Submits everything that is pending, in the order in which it was changed first.
    ///
    /// - Parameter group: of these types only; nil: of all.
    /// - Throws: As `submitPending`.
    public func submitPendingOperations(_ group: String? = nil) async throws(EntityError) {
        try write("submitting all") { try $0.submitAll(group: group) }
        try await send()
    }

    /// Gives up a row's pending change and those of its children: the server's version is restored, and what it has not
    /// heard of is gone (`isNew`). What was sent already cannot be taken back; what comes of it is an import.
    ///
    /// - Throws: `EntityError`: `objectNotFound`, `persistence`; `submission`: it is given up here, and taken back with
    ///   the next call or start.
    public func cancelPending(_ entity: inout Entity) async throws(EntityError) {
        let before = entity
        entity = try write("cancelling") { transaction in
            var entity = before
            if let row = try transaction.cancel(before) {
                entity.take(row)
            } else {
                entity.becomeGone(.localOnly)
            }
            return entity
        }
        try await send()
    }

    /// Gives up everything that is pending, the app's own operations included.
    ///
    /// - Parameter group: of these types only; nil: of all.
    /// - Throws: As `cancelPending`.
    public func cancelPendingOperations(_ group: String? = nil) async throws(EntityError) {
        try write("cancelling all") { try $0.cancelAll(group: group) }
        try await send()
    }

    /// Whether anything waits for the server, submitted or not.
    ///
    /// - Parameter group: of these types only; nil: of all.
    /// - Throws: `EntityError.persistence`.
    public func hasPendingOperations(_ group: String? = nil) throws(EntityError) -> Bool {
        try read("looking for pending operations") { try $0.hasPending(group: group) }
    }

    /// Rows of a type with a pending change, or with children that have one; deleted ones too.
    ///
    /// - Throws: `EntityError`: `noSuchClass`, `persistence`.
    public func pendingRows(_ typeName: String) throws(EntityError) -> [Entity] {
        let type = try schema.type(typeName)
        return try read("reading pending rows") { transaction in
            try transaction.pendingRows(of: type).map { Entity(type: type, row: $0) }
        }
    }

    /// Performs an operation of the app's own on the server: it goes at once, or when there is a connection.
    ///
    /// - Parameters:
    ///   - key: of the row that it is about; nil: of none.
    /// - Throws: `EntityError`: `noSuchOperation`, `noSuchParameter`, `wrongDataType`, `objectNotFound`; and as
    ///   `submitPending`.
    public func perform(
        _ operation: String, of typeName: String, key: AttributeValue? = nil,
        parameters: [String: AttributeValue] = [:]
    ) async throws(EntityError) {
        try write("performing \(operation)") { try $0.perform(operation, of: typeName, key: key, parameters) }
        try await send()
    }

    // MARK: Questions

    /// Rows of a query.
    ///
    /// - Throws: `EntityError`: `noSuchClass`, `noSuchAttribute`, `wrongDataType`, `invalidArgument`, `persistence`.
    public func findWithQuery(_ query: EntityQuery) throws(EntityError) -> [Entity] {
        try read("finding") { try $0.findWithQuery(query) }
    }

    /// Rows of a type that fulfil a condition.
    ///
    /// - Throws: As `findWithQuery`.
    public func find(_ typeName: String, _ condition: EntityCondition) throws(EntityError) -> [Entity] {
        try findWithQuery(EntityQuery(typeName).where(condition))
    }

    /// How many rows `findWithQuery` would give.
    ///
    /// - Throws: As `findWithQuery`.
    public func countWithQuery(_ query: EntityQuery) throws(EntityError) -> Int {
        try read("counting") { try $0.countWithQuery(query) }
    }

    /// The query's columns.
    ///
    /// - Throws: As `findWithQuery`.
    public func executeQuery(_ query: EntityQuery) throws(EntityError) -> QueryResult {
        try read("querying") { try $0.executeQuery(query) }
    }

    /// The row of a key; nil: there is none, or it is deleted.
    ///
    /// - Throws: `EntityError`: `noSuchClass`, `wrongDataType`, `persistence`.
    public func findByPrimaryKey(_ typeName: String, _ key: AttributeValue) throws(EntityError) -> Entity? {
        try read("finding by key") { try $0.findByPrimaryKey(typeName, key) }
    }

    /// All rows of a type, in the order in which they came into the store.
    ///
    /// - Throws: As `findWithQuery`.
    public func findAll(_ typeName: String, skip: Int = 0, take: Int? = nil) throws(EntityError) -> [Entity] {
        try read("finding all") { try $0.findAll(typeName, skip: skip, take: take) }
    }

    /// A row's children, but for those that are deleted.
    ///
    /// - Throws: `EntityError`: `noSuchAttribute`, `persistence`.
    public func children(of entity: Entity, _ relationship: String) throws(EntityError) -> [Entity] {
        try read("finding children") { try $0.children(of: entity, relationship) }
    }
}
