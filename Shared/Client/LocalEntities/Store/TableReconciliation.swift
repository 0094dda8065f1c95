import Foundation
import GRDB
import MobileSync

/// Updates a store's tables to the current declarations.
struct TableReconciliation {
    let db: Database
    let schema: EntitySchema
    /// The cipher of the store.
    let cipher: StoreCipher?

    /// Creates, changes and indexes tables. Tables of types that are not declared any more stay unchanged.
    ///
    /// - Throws: `EntityError.persistence` for a change that would need values that old rows do not have.
    func run() throws {
        for type in schema.types {
            let new = TableDeclaration(type, in: schema)
            let kept = try String.fetchOne(
                db, sql: "SELECT declaration FROM entity_type WHERE name = ?", arguments: [type.name])
            if let kept {
                let old = try JSONDecoder().decode(TableDeclaration.self, from: Data(kept.utf8))
                guard old != new else { continue }
                try change(type, from: old, to: new)
            } else {
                try db.execute(sql: EntityTable.creation(of: type))
            }
            try index(type, new)
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            try db.execute(
                sql: """
                    INSERT INTO entity_type (name, declaration) VALUES (?, ?)
                    ON CONFLICT DO UPDATE SET declaration = excluded.declaration
                    """,
                arguments: [type.name, String(decoding: try encoder.encode(new), as: UTF8.self)])
        }
    }

    private func change(_ type: EntityType, from old: TableDeclaration, to new: TableDeclaration) throws {
        let table = EntityTable.name(of: type.name)
        guard old.key == new.key else {
            throw EntityError(
                .persistence,
                "the key of \(type.name) was \(old.key) and cannot change; declare a type with another name")
        }
        // A column with an index cannot be dropped.
        let indexes = try String.fetchAll(
            db, sql: "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND name GLOB 'i_*'",
            arguments: ["e_\(type.name)"])
        for name in indexes { try db.execute(sql: "DROP INDEX \"\(name)\"") }
        for name in old.attributes.keys.sorted() where new.attributes[name] == nil {
            try db.execute(sql: "ALTER TABLE \(table) DROP COLUMN \(EntityTable.column(name))")
        }
        for attribute in type.attributes {
            let column = EntityTable.column(attribute.name)
            let name = "\(type.name).\(attribute.name)"
            if let former = old.attributes[attribute.name] {
                guard former == attribute.type.rawValue else {
                    throw EntityError(
                        .persistence,
                        "the type of \(name) was \(former) and cannot change; declare an attribute with another name")
                }
            } else {
                try db.execute(sql: "ALTER TABLE \(table) ADD COLUMN \(column)")
            }
            let hasNull = try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM \(table) WHERE \(column) IS NULL)")
            guard attribute.isNullable || hasNull != true else {
                throw EntityError(.persistence, "\(name) has no value in stored rows; declare it as nullable")
            }
        }
        guard let cipher else { return }
        let kept = Set(old.attributes.keys).intersection(new.attributes.keys)
        for name in kept where old.readable.contains(name) != new.readable.contains(name) {
            let isSealed = !old.readable.contains(name)
            try ColumnRewrite(db: db, from: isSealed ? cipher : nil, to: isSealed ? nil : cipher)
                .attribute(name, of: type.name)
        }
    }

    private func index(_ type: EntityType, _ declaration: TableDeclaration) throws {
        for attribute in declaration.readable.sorted() {
            try db.execute(
                sql: """
                    CREATE INDEX "i_\(type.name).\(attribute)" ON \(EntityTable.name(of: type.name))
                    (\(EntityTable.column(attribute)))
                    """)
        }
    }
}
