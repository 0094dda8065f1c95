/// A row by its attributes' names; a value, which the store changes when it is saved, loaded or refreshed.
public struct Entity: Sendable, Hashable {
    /// Its declaration.
    public let type: EntityType
    /// It is not in the store yet.
    public internal(set) var isNew: Bool
    /// Its state as of when it was loaded or saved last.
    public internal(set) var state: PendingState
    /// Children by relationship that `save` saves with it; finding a row loads none, `EntityStore.children` does.
    public private(set) var children: [String: [Entity]] = [:]
    /// All attributes, null where it has none.
    public private(set) var fields: [String: AttributeValue]
    /// The same as of when it was loaded or saved last.
    private(set) var savedFields: [String: AttributeValue]

    /// A row that is not in the store yet, with null for everything.
    init(new type: EntityType) {
        self.type = type
        isNew = true
        state = .localOnly
        fields = Dictionary(uniqueKeysWithValues: type.attributes.map { ($0.name, .null) })
        savedFields = fields
    }

    init(type: EntityType, row: StoredRow) {
        self.type = type
        isNew = false
        state = row.state
        fields = row.fields
        savedFields = row.fields
    }

    /// Changed in memory and not saved.
    public var isDirty: Bool { fields != savedFields }
    /// Created here, and not accepted by the server.
    public var isCreated: Bool { state.isCreated }
    /// Changed here, and not accepted by the server.
    public var isUpdated: Bool { state.isUpdated }
    /// Deleted here, and not accepted by the server.
    public var isDeleted: Bool { state.isDeleted }
    /// Whether it, or a child of it, has a change that is not settled.
    public var isPending: Bool { state.isPending }
    /// C, U, D, P or N.
    public var pendingChange: PendingChange { state.pendingChange }

    /// The key; null in a new row that was not given one.
    public var key: AttributeValue { fields[type.keyAttribute] ?? .null }

    /// An attribute's value.
    ///
    /// - Throws: `EntityError.noSuchAttribute`.
    public func value(_ name: String) throws(EntityError) -> AttributeValue {
        guard let value = fields[name] else {
            throw EntityError(.noSuchAttribute, "\(type.name) has no attribute \(name)")
        }
        return value
    }

    /// Changes an attribute in memory.
    ///
    /// - Throws: `EntityError`: `noSuchAttribute`, `wrongDataType`.
    public mutating func set(_ name: String, to value: AttributeValue) throws(EntityError) {
        fields[name] = try type.attribute(name).checked(value, of: type.name)
    }

    /// Adds a child that is saved with this; its foreign key is set then.
    ///
    /// - Throws: `EntityError`: `noSuchAttribute`, `wrongDataType` for a child of another type.
    public mutating func add(_ child: Entity, to relationship: String) throws(EntityError) {
        let declared = try type.relationship(relationship)
        guard child.type.name == declared.childType else {
            throw EntityError(.wrongDataType, "\(type.name).\(relationship) takes \(declared.childType)")
        }
        children[relationship, default: []].append(child)
    }

    /// The key of its row in the store.
    ///
    /// - Throws: `EntityError.objectNotFound` for a row that is not in the store.
    func savedKey() throws(EntityError) -> String {
        guard !isNew else { throw EntityError(.objectNotFound, "the \(type.name) was not saved, or is gone") }
        return try type.keyText(of: savedFields[type.keyAttribute])
    }

    /// What was changed in memory.
    var changedFields: [String: AttributeValue] { fields.filter { savedFields[$0.key] != $0.value } }

    /// Takes all attributes of a record.
    mutating func take(_ recordFields: [String: AttributeValue]) {
        for attribute in type.attributes { fields[attribute.name] = recordFields[attribute.name] ?? .null }
    }

    /// Is now what the store has.
    mutating func take(_ row: StoredRow) {
        isNew = false
        state = row.state
        fields = row.fields
        savedFields = row.fields
    }

    /// Is no more in the store.
    mutating func becomeGone(_ state: PendingState) {
        isNew = true
        self.state = state
    }

    /// Puts saved children in the place of those that were given.
    mutating func replaceChildren(of relationship: String, with saved: [Entity]) { children[relationship] = saved }
}
