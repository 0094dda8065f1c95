import Foundation
import GRDB
import MobileSync

/// The SQLite table of one entity type.
///
/// The names in the SQL are those of the declaration, which the schema has checked. Values are always arguments.
struct EntityTable: Sendable {
    let type: EntityType
    /// The attributes that are encrypted when the store has a key.
    let sealed: Set<String>
    let name: String
    private let selection: String
    private let insertion: String
    private let change: String

    /// The columns of a row's state, in the order in which `StoredRow` is read and written.
    private static let stateColumns = [
        "replay_counter", "replay_pending", "replay_failure", "in_flight", "flags", "pending_change", "original",
        "server_counter", "base_counter", "operation_id", "change_order", "base", "has_conflict",
    ]

    init(_ type: EntityType, in schema: EntitySchema) {
        self.type = type
        sealed = TableDeclaration(type, in: schema).sealed
        name = Self.name(of: type.name)
        let columns = Self.stateColumns + type.attributes.map { Self.column($0.name) }
        selection = "SELECT entity_key, \(columns.joined(separator: ", ")) FROM \(name)"
        let marks = Array(repeating: "?", count: columns.count).joined(separator: ", ")
        insertion = "INSERT INTO \(name) (\(columns.joined(separator: ", ")), entity_key) VALUES (\(marks), ?)"
        change = "UPDATE \(name) SET \(columns.map { "\($0) = ?" }.joined(separator: ", ")) WHERE entity_key = ?"
    }

    /// The table of a type.
    static func name(of typeName: String) -> String { "\"e_\(typeName)\"" }
    /// The column of an attribute.
    static func column(_ attribute: String) -> String { "\"a_\(attribute)\"" }

    /// The columns that the second migration adds to the tables of earlier versions.
    static let baseColumns = ["base BLOB", "has_conflict INTEGER NOT NULL DEFAULT 0"]

    /// The statements that create the table, without the indexes of attributes.
    static func creation(of type: EntityType) -> String {
        """
        CREATE TABLE \(name(of: type.name)) (
            id INTEGER PRIMARY KEY, entity_key TEXT NOT NULL UNIQUE,
            replay_counter INTEGER NOT NULL, replay_pending INTEGER NOT NULL, replay_failure INTEGER NOT NULL,
            in_flight TEXT, flags INTEGER NOT NULL, pending_change TEXT NOT NULL,
            original BLOB, server_counter INTEGER, base_counter INTEGER, operation_id TEXT,
            change_order INTEGER NOT NULL,
            \(baseColumns.joined(separator: ", ")),
            \(type.attributes.map { column($0.name) }.joined(separator: ", ")));
        CREATE INDEX "p_\(type.name)" ON \(name(of: type.name)) (change_order) WHERE pending_change <> 'N';
        """
    }

    // MARK: Rows

    /// The row with a key.
    func row(_ key: String, in db: Database, cipher: StoreCipher?) throws -> StoredRow? {
        try rows(where: "entity_key = ?", [key], in: db, cipher: cipher).first
    }

    /// The rows that fulfil a condition. The condition is SQL of this library, never text of the app.
    ///
    /// - Parameter isKept: whether the prepared statement is cached, for conditions that repeat.
    func rows(
        where condition: String, _ arguments: StatementArguments, in db: Database, cipher: StoreCipher?,
        isKept: Bool = true
    ) throws -> [StoredRow] {
        let sql = "\(selection) WHERE \(condition)"
        let statement = try isKept ? db.cachedStatement(sql: sql) : db.makeStatement(sql: sql)
        return try Row.fetchAll(statement, arguments: arguments).map { try stored($0, cipher: cipher) }
    }

    /// Decodes a row with the columns of `selection`.
    private func stored(_ row: Row, cipher: StoreCipher?) throws -> StoredRow {
        let key: String = row[0]
        var fields: [String: AttributeValue] = [:]
        for (index, attribute) in type.attributes.enumerated() {
            var value: DatabaseValue = row[index + Self.stateColumns.count + 1]
            if let cipher, sealed.contains(attribute.name) {
                let place = FieldColumn.place(type.name, attribute.name, key)
                value = try FieldColumn.opened(value, with: cipher, place: place)
            }
            fields[attribute.name] = try FieldColumn.attribute(value, attribute.type)
        }
        let state = PendingState(
            counter: row[1], pending: row[2], failure: row[3], inFlight: row[4], flags: row[5])
        let (original, base): (Data?, Data?) = (row[7], row[12])
        return StoredRow(
            key: key, fields: fields, state: state,
            original: try original.map { try self.fields(of: $0, at: .original, key: key, cipher: cipher) },
            hasConflict: row[13],
            base: try base.map { try self.fields(of: $0, at: .base, key: key, cipher: cipher) },
            serverCounter: row[8], baseCounter: row[9], operationID: row[10], changeOrder: row[11])
    }

    /// Inserts or updates a row.
    func write(_ row: StoredRow, isNew: Bool, in db: Database, cipher: StoreCipher?) throws {
        let state = row.state
        var values: [DatabaseValue] = [
            state.replayCounter.databaseValue, state.replayPending.databaseValue, state.replayFailure.databaseValue,
            state.inFlight?.rawValue.databaseValue ?? .null, state.flags.databaseValue,
            state.pendingChange.rawValue.databaseValue,
            try row.original.map { try column(of: $0, at: .original, key: row.key, cipher: cipher) } ?? .null,
            row.serverCounter?.databaseValue ?? .null, row.baseCounter?.databaseValue ?? .null,
            row.operationID?.databaseValue ?? .null, row.changeOrder.databaseValue,
            try row.base.map { try column(of: $0, at: .base, key: row.key, cipher: cipher) } ?? .null,
            row.hasConflict.databaseValue,
        ]
        for attribute in type.attributes {
            var value = try FieldColumn.value(of: row.fields[attribute.name] ?? .null)
            if let cipher, sealed.contains(attribute.name) {
                let place = FieldColumn.place(type.name, attribute.name, row.key)
                value = try FieldColumn.sealed(value, with: cipher, place: place)
            }
            values.append(value)
        }
        values.append(row.key.databaseValue)
        try db.cachedStatement(sql: isNew ? insertion : change).execute(arguments: StatementArguments(values))
    }

    /// Deletes a row.
    func remove(_ key: String, in db: Database) throws {
        try db.cachedStatement(sql: "DELETE FROM \(name) WHERE entity_key = ?").execute(arguments: [key])
    }

    // MARK: Versions of the server

    /// A column with all attributes of a version of the server, as JSON.
    enum VersionColumn: String, CaseIterable {
        case original, base

        /// The context with which the column is encrypted; no attribute has this name.
        func place(_ typeName: String, _ key: String) -> String { FieldColumn.place(typeName, "#\(rawValue)", key) }
    }

    private func column(
        of fields: [String: AttributeValue], at column: VersionColumn, key: String, cipher: StoreCipher?
    ) throws -> DatabaseValue {
        let plain = Data(try JSONValue.object(fields.mapValues(\.wire)).payload())
        return try (cipher?.seal(plain, for: column.place(type.name, key)) ?? plain).databaseValue
    }

    /// The attributes of a version. An attribute that was declared later is null; an attribute that is not declared any
    /// more is left out.
    private func fields(
        of stored: Data, at column: VersionColumn, key: String, cipher: StoreCipher?
    ) throws -> [String: AttributeValue] {
        let plain = try cipher?.open(stored, for: column.place(type.name, key)) ?? stored
        return try fields(ofWire: try JSONValue(payload: plain).members ?? [:])
    }

    /// Decodes attributes that this library has written.
    func fields(ofWire members: [String: JSONValue]) throws(EntityError) -> [String: AttributeValue] {
        var fields: [String: AttributeValue] = [:]
        for attribute in type.attributes {
            guard let value = AttributeValue(wire: members[attribute.name] ?? .null, type: attribute.type) else {
                throw EntityError(.persistence, "the stored value of \(type.name).\(attribute.name) has another type")
            }
            fields[attribute.name] = value
        }
        return fields
    }
}
