import MobileSync

/// The entity types of a store. The initialiser checks them against each other.
public struct EntitySchema: Sendable, Hashable {
    /// A link from a child to its parent.
    struct ParentLink: Sendable, Hashable {
        let parentType: String
        let relationship: EntityRelationship
    }

    /// The names of a row's state in queries.
    static let stateNames: Set<String> = [
        "pending", "pendingChange", "isCreated", "isUpdated", "isDeleted", "replayCounter", "replayPending",
        "replayFailure", "hasLogRecords",
    ]
    /// The names of operations that an app cannot declare.
    static let ownOperations: Set<String> = ["create", "update", "delete", "children"]

    /// The types in the order of declaration.
    public let types: [EntityType]
    private let typesByName: [String: EntityType]
    private let parentLinks: [String: [ParentLink]]

    /// Makes a schema and checks the declarations.
    ///
    /// - Throws: `EntityError.invalidDeclaration` with the reason.
    public init(_ types: [EntityType]) throws(EntityError) {
        self.types = types
        try Self.checkNames(types.map(\.name), of: "the schema")
        for type in types { try Self.check(type) }
        let typesByName = Dictionary(uniqueKeysWithValues: types.map { ($0.name, $0) })
        var links: [String: [ParentLink]] = [:]
        for type in types {
            for relationship in type.relationships {
                try Self.check(relationship, of: type, in: typesByName)
                links[relationship.childType, default: []].append(
                    ParentLink(parentType: type.name, relationship: relationship))
            }
        }
        self.typesByName = typesByName
        parentLinks = links
        for type in types {
            let inverses = (links[type.name] ?? []).compactMap(\.relationship.inverseName)
            let names = type.attributes.map(\.name) + type.relationships.map(\.name) + inverses
            try Self.checkNames(names, of: type.name)
        }
        try checkCircles()
    }

    /// Returns the type with a name.
    ///
    /// - Throws: `EntityError.noSuchClass`.
    public func type(_ name: String) throws(EntityError) -> EntityType {
        guard let type = typesByName[name] else {
            throw EntityError(.noSuchClass, "no entity type \(name) is declared")
        }
        return type
    }

    /// The relationships in which a type is the child, in the order of declaration.
    func parents(of typeName: String) -> [ParentLink] { parentLinks[typeName] ?? [] }

    /// The types that are synchronised: those of a group, or all.
    func synchronised(group: String?) -> [EntityType] {
        types.filter { !$0.isLocalOnly && (group == nil || $0.group == group) }
    }

    /// The type with a name.
    ///
    /// - Throws: `EntityError.noSuchClass`, also for a local-only type.
    func synchronised(_ name: String) throws(EntityError) -> EntityType {
        let type = try type(name)
        guard !type.isLocalOnly else {
            throw EntityError(.noSuchClass, "\(name) is local only and cannot be synchronised")
        }
        return type
    }

    /// Whether an attribute stays readable in an encrypted store: SQLite needs it to find rows.
    func isReadable(_ attribute: EntityAttribute, of type: EntityType) -> Bool {
        attribute.isIndexed || attribute.name == type.keyAttribute
            || parents(of: type.name).contains { $0.relationship.foreignKey == attribute.name }
    }

    // MARK: Checks

    private static func check(_ type: EntityType) throws(EntityError) {
        if let fault = type.fault { throw fault }
        guard let key = type.attributes.first(where: { $0.name == type.keyAttribute }) else {
            throw EntityError(
                .invalidDeclaration, "\(type.name) has no attribute \(type.keyAttribute), which is declared as its key")
        }
        guard key.type == .text || key.type == .integer, !key.isNullable else {
            throw EntityError(.invalidDeclaration, "the key of \(type.name) must be text or integer, and not nullable")
        }
        try checkOperations(of: type)
        for attribute in type.attributes where stateNames.contains(attribute.name) {
            throw EntityError(
                .invalidDeclaration,
                "\(type.name).\(attribute.name) has a reserved name: queries use it for the row's state")
        }
    }

    private static func checkOperations(of type: EntityType) throws(EntityError) {
        try checkNames(type.operations.map(\.name), of: type.name)
        for name in ["create"] + type.operations.map(\.name) where !type.isLocalOnly {
            let operation = SyncOperation(component: type.name, key: EntityLimits.noKey, name: name)
            if let fault = operation.fault { throw EntityError(.invalidDeclaration, "\(type.name): \(fault)") }
        }
        for operation in type.operations {
            guard !ownOperations.contains(operation.name) else {
                throw EntityError(.invalidDeclaration, "\(type.name): the operation name \(operation.name) is reserved")
            }
            try checkNames(operation.parameters.map(\.name), of: "\(type.name).\(operation.name)")
        }
    }

    private static func check(
        _ relationship: EntityRelationship, of type: EntityType, in types: [String: EntityType]
    ) throws(EntityError) {
        let name = "\(type.name).\(relationship.name)"
        guard let child = types[relationship.childType] else {
            throw EntityError(
                .invalidDeclaration, "\(name) names the type \(relationship.childType), which is not declared")
        }
        guard let foreignKey = child.attributes.first(where: { $0.name == relationship.foreignKey }),
            let key = type.attributes.first(where: { $0.name == type.keyAttribute }), foreignKey.type == key.type
        else {
            throw EntityError(
                .invalidDeclaration,
                "\(name): \(child.name).\(relationship.foreignKey) must be an attribute of the type of its parent's key"
            )
        }
        guard !type.isLocalOnly || child.isLocalOnly else {
            throw EntityError(.invalidDeclaration, "\(name): the children of a local-only type must be local-only")
        }
    }

    /// Names become part of SQL, which ignores case, so only these names are allowed.
    private static func checkNames(_ names: [String], of owner: String) throws(EntityError) {
        var seen: Set<String> = []
        for name in names {
            guard name.wholeMatch(of: /[A-Za-z_][A-Za-z0-9_]{0,59}/) != nil else {
                throw EntityError(
                    .invalidDeclaration,
                    "\(owner): a name must have 1 to 60 ASCII letters, digits and _, and no digit at the start")
            }
            guard seen.insert(name.lowercased()).inserted else {
                throw EntityError(.invalidDeclaration, "\(owner): the name \(name) is used twice")
            }
        }
    }

    /// Relationships must not form a cycle: a submission would have no topmost parent, and the pending state no end.
    private func checkCircles() throws(EntityError) {
        for type in types {
            var (toVisit, seen) = (type.relationships.map(\.childType), Set<String>())
            while let next = toVisit.popLast() {
                guard next != type.name else {
                    throw EntityError(.invalidDeclaration, "the relationships of \(type.name) form a cycle")
                }
                guard seen.insert(next).inserted else { continue }
                toVisit += typesByName[next]?.relationships.map(\.childType) ?? []
            }
        }
    }
}
