import Foundation
import GRDB
import MobileSync

/// Several changes that take effect together; what `EntityStore.transaction` gives its body.
///
/// Not for other threads, and not for later: once the body has returned, every call throws.
public final class EntityTransaction {
    let db: Database
    let cipher: StoreCipher?
    let store: EntityDatabase
    let clock: @Sendable () -> Date
    /// What handlers are to be told of once this is committed.
    var events: [EntityEvent] = []
    private var isOpen = true

    init(_ db: Database, cipher: StoreCipher?, store: EntityDatabase, clock: @escaping @Sendable () -> Date) {
        self.db = db
        self.cipher = cipher
        self.store = store
        self.clock = clock
    }

    /// Ends it: the database is no longer its own.
    func end() { isOpen = false }

    var schema: EntitySchema { store.schema }
    /// Milliseconds since 1970.
    var now: Int64 { AttributeValue.milliseconds(of: clock()) ?? 0 }

    /// Performs a step.
    ///
    /// - Throws: `EntityError.persistence` with the step's name, and what the body throws of this type.
    func step<Value>(_ name: String, _ body: () throws -> Value) throws(EntityError) -> Value {
        guard isOpen else { throw EntityError(.persistence, "\(name): the transaction is over") }
        do {
            return try body()
        } catch {
            throw EntityError.wrapping(error, name)
        }
    }

    func table(_ typeName: String) throws(EntityError) -> EntityTable {
        guard let table = store.tables[typeName] else {
            throw EntityError(.noSuchClass, "no entity type \(typeName) is declared")
        }
        return table
    }

    // MARK: Rows

    func stored(_ typeName: String, _ key: String) throws -> StoredRow? {
        try table(typeName).row(key, in: db, cipher: cipher)
    }

    /// The row that an app may still see or change.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    func visibleRow(_ type: EntityType, _ key: String) throws -> StoredRow {
        guard let row = try stored(type.name, key), !row.state.isRemoved else {
            throw EntityError(.objectNotFound, "there is no \(type.name) of this key")
        }
        return row
    }

    /// Writes a row, and tells its parents whether they have pending children now.
    ///
    /// - Parameter old: nil for a row that is new.
    func write(_ row: inout StoredRow, of type: EntityType, replacing old: StoredRow?) throws {
        if old == nil { row.state.hasPendingChildren = try hasPendingChildren(row, of: type) }
        try table(type.name).write(row, isNew: old == nil, in: db, cipher: cipher)
        try tellParents(of: type, [old?.fields, row.fields])
    }

    /// Deletes a row.
    func remove(_ row: StoredRow, of type: EntityType) throws {
        try table(type.name).remove(row.key, in: db)
        try tellParents(of: type, [row.fields])
    }

    /// A number above that of every change before.
    func nextChangeOrder() throws -> Int64 {
        try Int64.fetchOne(
            db.cachedStatement(sql: "UPDATE store SET last_change = last_change + 1 RETURNING last_change")) ?? 0
    }

    // MARK: Relatives

    /// The rows that have this one for a parent.
    func childRows(_ relationship: EntityRelationship, of row: StoredRow, _ type: EntityType) throws -> [StoredRow] {
        let key = try FieldColumn.value(of: row.fields[type.keyAttribute] ?? .null)
        return try table(relationship.childType).rows(
            where: "\(EntityTable.column(relationship.foreignKey)) = ? ORDER BY change_order, id", [key], in: db,
            cipher: cipher)
    }

    /// The row that a child names as its parent, if it is here.
    func parentRow(_ link: EntitySchema.ParentLink, of fields: [String: AttributeValue]) throws -> StoredRow? {
        guard let value = fields[link.relationship.foreignKey], value != .null else { return nil }
        return try stored(link.parentType, try schema.type(link.parentType).keyText(of: value))
    }

    private func hasPendingChildren(_ row: StoredRow, of type: EntityType) throws -> Bool {
        let key = try FieldColumn.value(of: row.fields[type.keyAttribute] ?? .null)
        for relationship in type.relationships {
            let statement = try db.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM \(EntityTable.name(of: relationship.childType))
                    WHERE \(EntityTable.column(relationship.foreignKey)) = ? AND pending_change <> 'N')
                    """)
            if try Bool.fetchOne(statement, arguments: [key]) == true { return true }
        }
        return false
    }

    private func tellParents(of type: EntityType, _ versions: [[String: AttributeValue]?]) throws {
        for link in schema.parents(of: type.name) {
            let foreignKeys = Set(versions.compactMap { $0?[link.relationship.foreignKey] })
            for value in foreignKeys {
                guard let old = try parentRow(link, of: [link.relationship.foreignKey: value]) else { continue }
                let parentType = try schema.type(link.parentType)
                let isPending = try hasPendingChildren(old, of: parentType)
                guard old.state.hasPendingChildren != isPending else { continue }
                var parent = old
                parent.state.hasPendingChildren = isPending
                if parent.changeOrder == 0, isPending { parent.changeOrder = try nextChangeOrder() }
                try write(&parent, of: parentType, replacing: old)
            }
        }
    }
}
