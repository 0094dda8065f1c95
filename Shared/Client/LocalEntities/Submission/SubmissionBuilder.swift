import MobileSync

/// Builds the operations that submit pending changes, and marks the rows as submitted.
struct SubmissionBuilder {
    private let context: TransactionContext
    private let rows: RowStore
    private let operations: PendingOperationStore

    init(context: TransactionContext) {
        self.context = context
        rows = RowStore(context: context)
        operations = PendingOperationStore(context: context)
    }

    /// Submits the changes of a row, its parents and its children as one operation of the topmost parent.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    func submit(_ entity: Entity) throws {
        let type = try context.schema.type(entity.type.name)
        let key = try entity.savedKey()
        guard !type.isLocalOnly else { return }
        guard let row = try rows.stored(type.name, key) else {
            throw EntityError(.objectNotFound, "no row of \(type.name) has this key")
        }
        try submitFamily(of: row, type)
    }

    /// Submits all pending changes of these types in the order of the first change of each row.
    func submitAll(of types: [EntityType]) throws {
        var pending: [(type: EntityType, key: String, order: Int64)] = []
        for type in types {
            for row in try rows.pendingRows(of: type) { pending.append((type, row.key, row.changeOrder)) }
        }
        for item in pending.sorted(by: { $0.order < $1.order }) {
            // An earlier family may have included the row; it is then already marked.
            if let row = try rows.stored(item.type.name, item.key) { try submitFamily(of: row, item.type) }
        }
    }

    /// Submits all pending changes in the family of a row, from its topmost parent down.
    func submitFamily(of row: StoredRow, _ type: EntityType) throws {
        var (top, topType) = (row, type)
        while let parent = try submittingParent(of: top, topType) { (top, topType) = parent }
        guard let tree = try mark(top, of: topType) else { return }
        try insert(tree)
    }

    /// The parent that a row is submitted with: that of the first declared relationship with an existing parent.
    private func submittingParent(of row: StoredRow, _ type: EntityType) throws -> (StoredRow, EntityType)? {
        for link in context.schema.parents(of: type.name) {
            let parentType = try context.schema.type(link.parentType)
            guard !parentType.isLocalOnly, let parent = try rows.parentRow(link, of: row.fields) else { continue }
            return (parent, parentType)
        }
        return nil
    }

    /// A submission that is being built.
    private struct Draft {
        let id = RandomID.make()
        let type: EntityType
        let key: String
        let change: PendingChange
        let body: [UInt8]
        let children: [Draft]

        /// All descendants, parents first.
        var family: [Draft] { children.flatMap { [$0] + $0.family } }
    }

    private func mark(_ old: StoredRow, of type: EntityType) throws -> Draft? {
        var row = old
        let submission = row.state.submit()
        var children: [Draft] = []
        for relationship in type.relationships {
            let childType = try context.schema.type(relationship.childType)
            guard !childType.isLocalOnly else { continue }
            for child in try rows.childRows(relationship, of: old, type) where child.state.isPending {
                if let draft = try mark(child, of: childType) { children.append(draft) }
            }
        }
        guard case .send(let change) = submission else {
            if row != old { try rows.write(&row, of: type, replacing: old) }
            guard !children.isEmpty else { return nil }
            return Draft(type: type, key: old.key, change: .parent, body: Array("{}".utf8), children: children)
        }
        let draft = Draft(
            type: type, key: old.key, change: change, body: try body(of: row, change: change), children: children)
        row.operationID = draft.id
        try rows.write(&row, of: type, replacing: old)
        return draft
    }

    private func body(of row: StoredRow, change: PendingChange) throws -> [UInt8] {
        var members: [String: JSONValue] = [:]
        if change != .delete { members["fields"] = .object(row.fields.mapValues(\.wire)) }
        if change == .update {
            // This change leaves out the attributes that only others have changed since.
            let before = row.hasConflict ? row.base : row.original
            let changed = row.fields.filter { before?[$0.key] != $0.value }
            members["changed"] = .array(changed.keys.sorted().map { .text($0) })
        }
        if let counter = row.baseCounter { members["counter"] = .integer(counter) }
        return try JSONValue.object(members).payload()
    }

    /// Stores a submission. When it exceeds the limits of one operation, it becomes several operations of the same row.
    private func insert(_ tree: Draft) throws {
        var (root, rest) = (tree, tree.family[...])
        while true {
            let part = Self.fitting(rest, beside: root)
            try insert(root, root: root.id, parent: nil)
            for child in part { try insert(child, root: root.id, parent: root.id) }
            rest = rest.dropFirst(part.count)
            if rest.isEmpty { return }
            root = Draft(type: tree.type, key: tree.key, change: .parent, body: Array("{}".utf8), children: [])
        }
    }

    /// The longest prefix of drafts that fits in one operation with the root; at least one when the root itself has no
    /// change.
    private static func fitting(_ drafts: ArraySlice<Draft>, beside root: Draft) -> ArraySlice<Draft> {
        var (count, bytes) = (0, root.body.count)
        for draft in drafts.prefix(EntityLimits.operationChildren) {
            bytes += draft.body.count
            guard bytes <= EntityLimits.operationBytes || (count == 0 && root.change == .parent) else { break }
            count += 1
        }
        return drafts.prefix(count)
    }

    private func insert(_ draft: Draft, root: String, parent: String?) throws {
        let kind = PendingOperation.Kind(rawValue: draft.change.rawValue) ?? .parent
        try operations.insert(
            PendingOperation(
                id: draft.id, rootID: root, parentID: parent, component: draft.type.name, key: draft.key,
                name: draft.change.operationName, kind: kind, body: draft.body))
    }

    // MARK: Operations of the app

    /// Stores an operation of the app, which is sent at once.
    ///
    /// - Throws: `EntityError`: `noSuchOperation`, `noSuchParameter`, `wrongDataType`, `objectNotFound`.
    func perform(
        _ name: String, of typeName: String, key: AttributeValue?, _ arguments: [String: AttributeValue]
    ) throws {
        let type = try context.schema.type(typeName)
        let operation = try type.operation(name)
        let parameters = try operation.checked(arguments)
        guard !type.isLocalOnly else {
            throw EntityError(.noSuchOperation, "\(typeName) is local only and has no operations on the server")
        }
        let keyText = try key.map { try type.keyText(of: $0) }
        if let keyText { _ = try rows.visibleRow(type, keyText) }
        let id = RandomID.make()
        try operations.insert(
            PendingOperation(
                id: id, rootID: id, parentID: nil, component: typeName, key: keyText ?? "", name: name,
                kind: .other, body: try JSONValue.object(["parameters": .object(parameters)]).payload()))
    }
}
