import Foundation
import GRDB
import MobileSync

/// Taking what the server tells.
extension EntityTransaction {
    /// Takes one payload of an entity type's Sync ID. What cannot be taken would not be better the next time: it is
    /// noted in a log record and passed over.
    func importPayload(_ payload: some Sequence<UInt8>, of typeName: String) throws(EntityError) {
        try step("taking an import") {
            do {
                for entry in try ImportEntry.all(in: payload, component: typeName) { try apply(entry) }
            } catch let error as EntityError where error.code == .wrongDataType {
                try note(.refusedImport(of: typeName, error, at: now))
            }
        }
    }

    /// Takes one row, unless it is older than what is here, or its type is not subscribed.
    func apply(_ entry: ImportEntry) throws {
        do {
            let type = try schema.type(entry.component)
            guard !type.isLocalOnly else {
                throw EntityError(.noSuchClass, "\(type.name) is local only and takes no imports")
            }
            guard try isSubscribed(type.name) else { return }
            let old = try stored(type.name, entry.key)
            let known = try old?.serverCounter ?? tombstone(type.name, entry.key)
            if let known, let counter = entry.counter, counter < known { return }
            if entry.isDeleted {
                try applyDeletion(entry, to: old, type)
            } else {
                try applyVersion(entry, to: old, type)
            }
        } catch let error as EntityError where error.code != .persistence {
            try note(.refusedImport(of: entry.component, key: entry.key, error, at: now))
        }
    }

    private func applyVersion(_ entry: ImportEntry, to old: StoredRow?, _ type: EntityType) throws {
        let fields = try merged(entry, onto: old?.serverFields, type)
        var row = old ?? StoredRow(key: entry.key, fields: fields, state: .imported(counter: entry.counter))
        row.serverCounter = entry.counter ?? row.serverCounter
        if old != nil {
            switch row.state.imported(exists: true, counter: entry.counter) {
            case .applied: row.fields = fields
            case .originalChanged: row.original = fields
            case .originalGone, .rowRemoved: break
            }
        }
        try write(&row, of: type, replacing: old)
        try db.cachedStatement(sql: "DELETE FROM tombstone WHERE type_name = ? AND entity_key = ?")
            .execute(arguments: [type.name, entry.key])
        var version = row
        version.fields = fields
        events.append(.imported(Entity(type: type, row: version)))
    }

    private func applyDeletion(_ entry: ImportEntry, to old: StoredRow?, _ type: EntityType) throws {
        try bury(type.name, entry.key, counter: entry.counter)
        guard let old else { return }
        var row = old
        switch row.state.imported(exists: false, counter: entry.counter) {
        case .rowRemoved: try remove(old, of: type)
        case .originalGone, .applied, .originalChanged:
            row.original = nil
            row.serverCounter = entry.counter ?? row.serverCounter
            try write(&row, of: type, replacing: old)
        }
        events.append(.imported(Entity(type: type, row: row)))
    }

    /// The server's version: attributes that the import leaves out stay; those that the app does not know are passed
    /// over, as the backend may be newer.
    private func merged(
        _ entry: ImportEntry, onto known: [String: AttributeValue]?, _ type: EntityType
    ) throws(EntityError) -> [String: AttributeValue] {
        guard let key = type.keyValue(of: entry.key) else {
            throw EntityError(.wrongDataType, "an import of \(type.name) has a key of another type")
        }
        var fields = known ?? [:]
        for (name, wire) in entry.fields {
            guard let attribute = type.attributes.first(where: { $0.name == name }) else { continue }
            guard let value = AttributeValue(wire: wire, type: attribute.type) else {
                throw EntityError(.wrongDataType, "\(type.name).\(name) takes \(attribute.type.rawValue)")
            }
            fields[name] = value
        }
        fields[type.keyAttribute] = key
        return try type.checked(fields)
    }

    // MARK: Deletions

    private func tombstone(_ typeName: String, _ key: String) throws -> Int64? {
        try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT counter FROM tombstone WHERE type_name = ? AND entity_key = ?"),
            arguments: [typeName, key])
    }

    /// Keeps the counter of a deletion.
    func bury(_ typeName: String, _ key: String, counter: Int64?) throws {
        guard let counter else { return }
        try db.cachedStatement(
            sql: """
                INSERT INTO tombstone VALUES (?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET counter = excluded.counter, at_ms = excluded.at_ms
                """
        ).execute(arguments: [typeName, key, counter, now])
    }

    /// Forgets deletions, and cancelled operations without an answer, that are older than any import still on its way.
    func prune() throws {
        let oldest = now - EntityLimits.kept.milliseconds
        try db.execute(sql: "DELETE FROM tombstone WHERE at_ms < ?", arguments: [oldest])
        try db.execute(
            sql: """
                DELETE FROM operation WHERE root_id IN (
                    SELECT id FROM operation WHERE is_cancelled = 2 AND created_at_ms < ?)
                """, arguments: [oldest])
    }

    // MARK: Subscriptions

    /// Whether data of the type is taken.
    func isSubscribed(_ typeName: String) throws -> Bool {
        try Bool.fetchOne(
            db.cachedStatement(sql: "SELECT is_subscribed FROM entity_type WHERE name = ?"), arguments: [typeName])
            ?? true
    }

    /// Takes data of the type from now on, or passes it over.
    func setSubscribed(_ isSubscribed: Bool, _ typeName: String) throws {
        try db.execute(
            sql: "UPDATE entity_type SET is_subscribed = ? WHERE name = ?", arguments: [isSubscribed, typeName])
    }

    /// Notes that all that the server has of the type is to be asked for, or was.
    func setNeedsRecovery(_ needsRecovery: Bool, _ typeName: String) throws {
        try db.execute(
            sql: "UPDATE entity_type SET needs_recovery = ? WHERE name = ?", arguments: [needsRecovery, typeName])
    }

    /// Whether that is so.
    func needsRecovery(_ typeName: String) throws -> Bool {
        try Bool.fetchOne(
            db, sql: "SELECT needs_recovery FROM entity_type WHERE name = ?", arguments: [typeName]) ?? false
    }

    /// Deletes the type's rows.
    ///
    /// - Parameter keepsPending: those with an edit stay.
    func clean(_ type: EntityType, keepsPending: Bool) throws {
        let condition = keepsPending ? "pending_change = 'N'" : "1"
        for row in try table(type.name).rows(where: condition, [], in: db, cipher: cipher) {
            try remove(row, of: type)
        }
        // After a new start older versions are all that there is.
        try db.execute(sql: "DELETE FROM tombstone WHERE type_name = ?", arguments: [type.name])
    }
}
