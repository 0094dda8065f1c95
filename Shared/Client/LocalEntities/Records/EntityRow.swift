/// A record with the state of its row.
///
/// Members of the record are members of the row: `row.title = "x"`.
@dynamicMemberLookup
public struct EntityRow<Record: EntityRecord>: Sendable {
    /// The record. Changes are in memory until the row is saved.
    public var record: Record
    /// The row when it was last loaded or saved, with its state.
    var entity: Entity

    /// Makes a row that is not stored yet.
    public init(_ record: Record) {
        self.record = record
        entity = Entity(new: Record.entityType)
    }

    /// Makes the row of an `Entity`, such as a version of an `EntityConflict`.
    ///
    /// - Throws: `EntityError.wrongDataType` when the attributes do not match the Swift type.
    public init(_ entity: Entity) throws(EntityError) {
        let typeName = Record.entityType.name
        guard entity.type.name == typeName else {
            throw EntityError(.wrongDataType, "the row is of \(entity.type.name), not of \(typeName)")
        }
        record = try RecordCoder.record(Record.self, of: entity.fields)
        self.entity = entity
    }

    /// A member of the record.
    public subscript<Member>(dynamicMember path: WritableKeyPath<Record, Member>) -> Member {
        get { record[keyPath: path] }
        set { record[keyPath: path] = newValue }
    }

    /// Whether the row is not stored yet.
    public var isNew: Bool { entity.isNew }
    /// Whether the row is changed in memory and not saved.
    public var isDirty: Bool { (try? taken().isDirty) ?? true }
    /// Whether the row was created here and the server has not accepted it.
    public var isCreated: Bool { entity.isCreated }
    /// Whether the row was changed here and the server has not accepted it.
    public var isUpdated: Bool { entity.isUpdated }
    /// Whether the row was deleted here and the server has not accepted it.
    public var isDeleted: Bool { entity.isDeleted }
    /// Whether the row or a child has a change that the server has not accepted.
    public var isPending: Bool { entity.isPending }
    /// The pending change: C, U, D, P or N.
    public var pendingChange: PendingChange { entity.pendingChange }
    /// The state of the row when it was last loaded or saved.
    public var state: PendingState { entity.state }

    /// Adds a child that is saved with this row. `save` sets its foreign key.
    ///
    /// - Throws: `EntityError`: `noSuchAttribute`, `wrongDataType`.
    public mutating func add<Child>(_ child: EntityRow<Child>, to relationship: String) throws(EntityError) {
        try entity.add(try child.taken(), to: relationship)
    }

    /// Returns the row as an `Entity`, including changes in memory.
    ///
    /// - Throws: `EntityError`: `noSuchAttribute`, `wrongDataType`.
    public func taken() throws(EntityError) -> Entity {
        var taken = entity
        taken.setFields(try RecordCoder.fields(of: record))
        return taken
    }

    /// Executes the body on the row as an `Entity` and copies the result back.
    mutating func asEntity<Value>(
        _ body: (inout Entity) throws(EntityError) -> Value
    ) throws(EntityError) -> Value {
        var taken = try taken()
        let value = try body(&taken)
        try load(taken)
        return value
    }

    /// Executes a change that is submitted on the row as an `Entity`, and copies the result back.
    mutating func submitting(
        _ entity: Entity, _ change: (inout Entity) async throws(EntityError) -> Void
    ) async throws(EntityError) {
        var entity = entity
        do {
            try await change(&entity)
        } catch {
            // The change is stored in spite of the error, and the row must show that.
            if error.code == .submission { try load(entity) }
            throw error
        }
        try load(entity)
    }

    /// Sets the row to an `Entity`.
    mutating func load(_ entity: Entity) throws(EntityError) {
        record = try RecordCoder.record(Record.self, of: entity.fields)
        self.entity = entity
    }
}
