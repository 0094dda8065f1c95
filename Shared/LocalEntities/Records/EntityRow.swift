/// A record together with its row's state.
///
/// Members of the record are members of the row: `row.title = "x"`.
@dynamicMemberLookup
public struct EntityRow<Record: EntityRecord>: Sendable {
    /// The record; what is changed here is in memory until it is saved.
    public var record: Record
    /// The row as it was loaded or saved last, with its state.
    var entity: Entity

    /// A row that is not in the store yet.
    public init(_ record: Record) {
        self.record = record
        entity = Entity(new: Record.entityType)
    }

    init(_ entity: Entity) throws(EntityError) {
        record = try RecordCoder.record(Record.self, of: entity.fields)
        self.entity = entity
    }

    /// A member of the record.
    public subscript<Member>(dynamicMember path: WritableKeyPath<Record, Member>) -> Member {
        get { record[keyPath: path] }
        set { record[keyPath: path] = newValue }
    }

    /// It is not in the store yet.
    public var isNew: Bool { entity.isNew }
    /// Changed in memory and not saved.
    public var isDirty: Bool { (try? taken().isDirty) ?? true }
    /// Created here, and not accepted by the server.
    public var isCreated: Bool { entity.isCreated }
    /// Changed here, and not accepted by the server.
    public var isUpdated: Bool { entity.isUpdated }
    /// Deleted here, and not accepted by the server.
    public var isDeleted: Bool { entity.isDeleted }
    /// Whether it, or a child of it, has a change that is not settled.
    public var isPending: Bool { entity.isPending }
    /// C, U, D, P or N.
    public var pendingChange: PendingChange { entity.pendingChange }
    /// Its state as of when it was loaded or saved last.
    public var state: PendingState { entity.state }

    /// Adds a child that is saved with this; its foreign key is set then.
    ///
    /// - Throws: `EntityError`: `noSuchAttribute`, `wrongDataType`.
    public mutating func add<Child>(_ child: EntityRow<Child>, to relationship: String) throws(EntityError) {
        try entity.add(try child.taken(), to: relationship)
    }

    /// The same as a row by names.
    ///
    /// - Throws: `EntityError`: `noSuchAttribute`, `wrongDataType`.
    public func taken() throws(EntityError) -> Entity {
        var taken = entity
        taken.take(try RecordCoder.fields(of: record))
        return taken
    }

    /// Has the body change the row by names, and takes what came of it.
    mutating func asEntity<Value>(
        _ body: (inout Entity) throws(EntityError) -> Value
    ) throws(EntityError) -> Value {
        var taken = try taken()
        let value = try body(&taken)
        record = try RecordCoder.record(Record.self, of: taken.fields)
        entity = taken
        return value
    }
}
