import Foundation
import GRDB
import MobileSync

/// Encrypts columns with another key; nil: decrypts them.
struct ColumnRewrite {
    let db: Database
    let from: StoreCipher?
    let to: StoreCipher?

    /// Rewrites all encrypted data of a store, and the check of its key.
    func everything() throws {
        for row in try Row.fetchAll(db, sql: "SELECT name, declaration FROM entity_type") {
            let (name, text): (String, String) = (row[0], row[1])
            let declaration = try JSONDecoder().decode(TableDeclaration.self, from: Data(text.utf8))
            for attribute in declaration.sealed.sorted() { try self.attribute(attribute, of: name) }
            for column in EntityTable.VersionColumn.allCases {
                try bytes(column.rawValue, of: EntityTable.name(of: name), by: "entity_key") { column.place(name, $0) }
            }
        }
        try bytes("body", of: "operation", by: "id", place: PendingOperation.bodyPlace)
        try bytes("message", of: "log_record", by: "message_id", place: LogRecord.messagePlace)
        try db.execute(sql: "UPDATE store SET key_check = ?", arguments: [try to?.makeCheck()])
    }

    /// Rewrites one attribute of a type.
    func attribute(_ name: String, of typeName: String) throws {
        try rewrite(EntityTable.column(name), of: EntityTable.name(of: typeName), by: "entity_key") { value, key in
            let place = FieldColumn.place(typeName, name, key)
            let plain = try from.map { try FieldColumn.opened(value, with: $0, place: place) } ?? value
            return try to.map { try FieldColumn.sealed(plain, with: $0, place: place) } ?? plain
        }
    }

    private func bytes(
        _ column: String, of table: String, by keyColumn: String, place: (String) -> String
    ) throws {
        try rewrite(column, of: table, by: keyColumn) { value, key in
            guard let stored = Data.fromDatabaseValue(value) else { return value }
            let plain = try from?.open(stored, for: place(key)) ?? stored
            return try (to?.seal(plain, for: place(key)) ?? plain).databaseValue
        }
    }

    private func rewrite(
        _ column: String, of table: String, by keyColumn: String,
        _ change: (DatabaseValue, String) throws -> DatabaseValue
    ) throws {
        let update = try db.makeStatement(sql: "UPDATE \(table) SET \(column) = ? WHERE \(keyColumn) = ?")
        let select = try db.makeStatement(sql: "SELECT \(column) FROM \(table) WHERE \(keyColumn) = ?")
        let keys = try String.fetchAll(db, sql: "SELECT \(keyColumn) FROM \(table) WHERE \(column) IS NOT NULL")
        for key in keys {
            guard let value = try DatabaseValue.fetchOne(select, arguments: [key]) else { continue }
            try update.execute(arguments: [try change(value, key), key])
        }
    }
}
