/// A row with attributes by name. It is a value: the store's calls update it when they save, load or refresh it.
public struct Entity: Sendable, Hashable {
    /// The row's type.
    public let type: EntityType
    /// Whether the row is not stored yet.
    public internal(set) var isNew: Bool
    /// The state of the row when it was last loaded or saved.
    public internal(set) var state: PendingState
    /// The children that `save` saves with the row, by relationship. The `find` calls load no children;
    /// `EntityStore.children` does.
    public private(set) var children: [String: [Entity]] = [:]
    /// All attributes; null where the row has no value.
    public private(set) var fields: [String: AttributeValue]
    /// The attributes when the row was last loaded or saved.
    private(set) var savedFields: [String: AttributeValue]

    /// Makes a row that is not stored yet; all its attributes are null.
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

    /// Whether the row is changed in memory and not saved.
    public var isDirty: Bool { fields != savedFields }
    /// Whether the row was created here and the server has not accepted it.
    public var isCreated: Bool { state.isCreated }
    /// Whether the row was changed here and the server has not accepted it.
    public var isUpdated: Bool { state.isUpdated }
    /// Whether the row was deleted here and the server has not accepted it.
    public var isDeleted: Bool { state.isDeleted }
    /// Whether the row or a child has a change that the server has not accepted.
    public var isPending: Bool { state.isPending }
    /// The pending change: C, U, D, P or N.
    public var pendingChange: PendingChange { state.pendingChange }

    /// The key; null in a new row without a key.
    public var key: AttributeValue { fields[type.keyAttribute] ?? .null }

    /// Returns the value of an attribute.
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

    /// Adds a child that is saved with this row. `save` sets its foreign key.
    ///
    /// - Throws: `EntityError`: `noSuchAttribute`, `wrongDataType` for a child of another type.
    public mutating func add(_ child: Entity, to relationship: String) throws(EntityError) {
        let declared = try type.relationship(relationship)
        guard child.type.name == declared.childType else {
            throw EntityError(
                .wrongDataType, "\(type.name).\(relationship) must have children of type \(declared.childType)")
        }
        children[relationship, default: []].append(child)
    }

    /// The key of the stored row.
    ///
    /// - Throws: `EntityError.objectNotFound` when the row is not stored.
    func savedKey() throws(EntityError) -> String {
        guard !isNew else {
            throw EntityError(.objectNotFound, "the row of \(type.name) is not stored, or was deleted")
        }
        return try type.keyText(of: savedFields[type.keyAttribute])
    }

    /// The attributes that were changed in memory.
    var changedFields: [String: AttributeValue] { fields.filter { savedFields[$0.key] != $0.value } }

    /// Sets all attributes to those of a record.
    mutating func setFields(_ recordFields: [String: AttributeValue]) {
        for attribute in type.attributes { fields[attribute.name] = recordFields[attribute.name] ?? .null }
    }

    /// Sets the entity to the stored row. The value is nil for a row that is not stored any more.
    mutating func load(_ row: StoredRow?) {
        guard let row else { return markRemoved(.localOnly) }
        isNew = false
        state = row.state
        fields = row.fields
        savedFields = row.fields
    }

    /// Marks the entity as not stored any more.
    mutating func markRemoved(_ state: PendingState) {
        isNew = true
        self.state = state
    }

    /// Replaces the children of a relationship by the saved ones.
    mutating func replaceChildren(of relationship: String, with saved: [Entity]) { children[relationship] = saved }
}
