import Foundation
import GRDB
import MobileSync

/// Marking what goes up: the rows and their operations change in one transaction; sending comes after it.
extension EntityTransaction {
    /// Submits a row's change with those of its parents and children, as one operation of its topmost parent.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    func submit(_ entity: Entity) throws(EntityError) {
        let type = try schema.type(entity.type.name)
        let key = try entity.savedKey()
        try step("submitting") {
            guard !type.isLocalOnly else { return }
            guard let row = try stored(type.name, key) else {
                throw EntityError(.objectNotFound, "there is no \(type.name) of this key")
            }
            try submitFamily(of: row, type)
        }
    }

    /// Submits everything that is pending, in the order in which it was changed first.
    ///
    /// - Parameter group: of these types only; nil: of all.
    func submitAll(group: String?) throws(EntityError) {
        try step("submitting all") {
            var pending: [(type: EntityType, key: String, order: Int64)] = []
            for type in schema.synchronised(group: group) {
                for row in try pendingRows(of: type) { pending.append((type, row.key, row.changeOrder)) }
            }
            for item in pending.sorted(by: { $0.order < $1.order }) {
                // One that went with an earlier family is marked by now.
                if let row = try stored(item.type.name, item.key) { try submitFamily(of: row, item.type) }
            }
        }
    }

    /// Rows with a pending change, or with children that have one, oldest change first.
    func pendingRows(of type: EntityType) throws -> [StoredRow] {
        try table(type.name).rows(where: "pending_change <> 'N' ORDER BY change_order", [], in: db, cipher: cipher)
    }

    /// Marks all that is pending in the family of a row, from its topmost parent down.
    func submitFamily(of row: StoredRow, _ type: EntityType) throws {
        var (top, topType) = (row, type)
        while let parent = try submittingParent(of: top, topType) { (top, topType) = parent }
        guard let tree = try mark(top, of: topType) else { return }
        try insert(tree)
    }

    /// The parent that a row goes up with: of the first declared relationship that leads to one.
    private func submittingParent(of row: StoredRow, _ type: EntityType) throws -> (StoredRow, EntityType)? {
        for link in schema.parents(of: type.name) {
            let parentType = try schema.type(link.parentType)
            guard !parentType.isLocalOnly, let parent = try parentRow(link, of: row.fields) else { continue }
            return (parent, parentType)
        }
        return nil
    }

    /// A submission that takes shape.
    private struct Draft {
        let id = RandomID.make()
        let type: EntityType
        let key: String
        let change: PendingChange
        let body: [UInt8]
        let children: [Draft]

        /// Its children and theirs, parents first.
        var family: [Draft] { children.flatMap { [$0] + $0.family } }
    }

    private func mark(_ old: StoredRow, of type: EntityType) throws -> Draft? {
        var row = old
        let submission = row.state.submit()
        var children: [Draft] = []
        for relationship in type.relationships {
            let childType = try schema.type(relationship.childType)
            guard !childType.isLocalOnly else { continue }
            for child in try childRows(relationship, of: old, type) where child.state.isPending {
                if let draft = try mark(child, of: childType) { children.append(draft) }
            }
        }
        guard case .send(let change) = submission else {
            if row != old { try write(&row, of: type, replacing: old) }
            guard !children.isEmpty else { return nil }
            return Draft(type: type, key: old.key, change: .parent, body: Array("{}".utf8), children: children)
        }
        let draft = Draft(
            type: type, key: old.key, change: change, body: try body(of: row, change: change), children: children)
        row.operationID = draft.id
        try write(&row, of: type, replacing: old)
        return draft
    }

    private func body(of row: StoredRow, change: PendingChange) throws -> [UInt8] {
        var members: [String: JSONValue] = [:]
        if change != .delete { members["fields"] = .object(row.fields.mapValues(\.wire)) }
        if change == .update {
            let changed = row.fields.filter { row.original?[$0.key] != $0.value }
            members["changed"] = .array(changed.keys.sorted().map { .text($0) })
        }
        if let counter = row.baseCounter { members["counter"] = .integer(counter) }
        return try JSONValue.object(members).bytes()
    }

    /// Notes a submission. What is too much for one operation goes in several of the same row, one after the other.
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

    /// The first of these that go in one operation with a root; where the root is nothing by itself at least one.
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
        try insert(
            PendingOperation(
                id: draft.id, rootID: root, parentID: parent, component: draft.type.name, key: draft.key,
                name: draft.change.operationName, kind: kind, body: draft.body))
    }

    /// Notes an operation that is to be sent.
    func insert(_ operation: PendingOperation) throws {
        let body = Data(operation.body)
        try db.cachedStatement(
            sql: """
                INSERT INTO operation (id, root_id, parent_id, component, entity_key, name, kind, body, created_at_ms)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: [
            operation.id, operation.rootID, operation.parentID, operation.component, operation.key, operation.name,
            operation.kind.rawValue,
            try cipher?.seal(body, for: PendingOperation.bodyPlace(operation.id)) ?? body, now,
        ])
    }

    // MARK: What is marked

    /// Notes an operation of the app's own, which goes at once.
    ///
    /// - Throws: `EntityError`: `noSuchOperation`, `noSuchParameter`, `wrongDataType`, `objectNotFound`.
    func perform(
        _ name: String, of typeName: String, key: AttributeValue?, _ arguments: [String: AttributeValue]
    ) throws(EntityError) {
        let type = try schema.type(typeName)
        let operation = try type.operation(name)
        let parameters = try operation.checked(arguments)
        guard !type.isLocalOnly else {
            throw EntityError(.noSuchOperation, "\(typeName) is local only and has no operations on the server")
        }
        let keyText = try key.map { value throws(EntityError) in try type.keyText(of: value) }
        try step("performing \(name)") {
            if let keyText { _ = try visibleRow(type, keyText) }
            let id = RandomID.make()
            try insert(
                PendingOperation(
                    id: id, rootID: id, parentID: nil, component: typeName, key: keyText ?? "", name: name,
                    kind: .other, body: try JSONValue.object(["parameters": .object(parameters)]).bytes()))
        }
    }

    /// The operation of an id, unless it is answered.
    func operation(_ id: String) throws -> PendingOperation? { try operations(where: "id = ?", [id]).first }

    /// Operations that fulfil a condition, whose words are this library's, in their order.
    func operations(where condition: String, _ arguments: StatementArguments) throws -> [PendingOperation] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT id, root_id, parent_id, component, entity_key, name, kind, body FROM operation
                WHERE \(condition) ORDER BY position
                """)
        return try Row.fetchAll(statement, arguments: arguments).map { row in
            let (id, kind, body): (String, String, Data) = (row[0], row[6], row[7])
            return PendingOperation(
                id: id, rootID: row[1], parentID: row[2], component: row[3], key: row[4], name: row[5],
                kind: PendingOperation.Kind(rawValue: kind) ?? .parent,
                body: [UInt8](try cipher?.open(body, for: PendingOperation.bodyPlace(id)) ?? body))
        }
    }

    /// Whether anything waits for the server, submitted or not.
    ///
    /// - Parameter group: of these types only; nil: of all.
    func hasPending(group: String?) throws(EntityError) -> Bool {
        try step("looking for pending operations") {
            for type in schema.synchronised(group: group) {
                let table = EntityTable.name(of: type.name)
                let row = "SELECT 1 FROM \(table) WHERE pending_change <> 'N'"
                let call = "SELECT 1 FROM operation WHERE component = ? AND kind = 'O' AND NOT is_cancelled"
                let sql = "SELECT EXISTS (\(row)) OR EXISTS (\(call))"
                if try Bool.fetchOne(db, sql: sql, arguments: [type.name]) == true { return true }
            }
            return false
        }
    }

    /// Roots to be sent, in their order, with what goes with each.
    ///
    /// - Parameter limit: roots at most.
    func unsent(limit: Int) throws -> [SyncOperation] {
        let roots = try operations(
            where: "parent_id IS NULL AND NOT is_sent AND NOT is_cancelled", []
        ).prefix(limit)
        return try roots.map { root in
            // The root's answer may come part by part: then what is answered is known to the server.
            let parts = try operations(where: "root_id = ? AND parent_id IS NOT NULL", [root.id])
            return Self.wire(root, children: parts.map { Self.wire($0) })
        }
    }

    /// What goes with a root goes in one list, parents before their children: children of an operation have none.
    private static func wire(_ part: PendingOperation, children: [SyncOperation] = []) -> SyncOperation {
        SyncOperation(
            id: part.id, component: part.component, key: part.key.isEmpty ? EntityLimits.noKey : part.key,
            name: part.name, body: part.body, children: children)
    }

    /// The submitter has these roots.
    func markSent(_ ids: [String]) throws {
        for id in ids {
            try db.cachedStatement(sql: "UPDATE operation SET is_sent = 1 WHERE id = ?").execute(arguments: [id])
        }
    }

    /// At start: the submitter may have lost what it had, and knows by their ids those that it has not.
    func markAllUnsent() throws { try db.execute(sql: "UPDATE operation SET is_sent = 0") }
}
