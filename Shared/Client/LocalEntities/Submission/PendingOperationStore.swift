import Foundation
import GRDB
import MobileSync

/// The operations that have no result yet, submitted or not. A row and its operation change in one transaction; the
/// operation is sent after it.
struct PendingOperationStore {
    let context: TransactionContext

    /// Stores an operation to be sent.
    func insert(_ operation: PendingOperation) throws {
        let body = Data(operation.body)
        try context.db.cachedStatement(
            sql: """
                INSERT INTO operation (id, root_id, parent_id, component, entity_key, name, kind, body, created_at_ms)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: [
            operation.id, operation.rootID, operation.parentID, operation.component, operation.key, operation.name,
            operation.kind.rawValue,
            try context.cipher?.seal(body, for: PendingOperation.bodyPlace(operation.id)) ?? body, context.now,
        ])
    }

    /// The operation with an id; nil when it has a result.
    func find(_ id: String) throws -> PendingOperation? { try all(where: "id = ?", [id]).first }

    /// The operations that fulfil a condition, in order. The condition is SQL of this library.
    func all(where condition: String, _ arguments: StatementArguments) throws -> [PendingOperation] {
        let statement = try context.db.cachedStatement(
            sql: """
                SELECT id, root_id, parent_id, component, entity_key, name, kind, body FROM operation
                WHERE \(condition) ORDER BY position
                """)
        return try Row.fetchAll(statement, arguments: arguments).map { row in
            let (id, kind, body): (String, String, Data) = (row[0], row[6], row[7])
            return PendingOperation(
                id: id, rootID: row[1], parentID: row[2], component: row[3], key: row[4], name: row[5],
                kind: PendingOperation.Kind(rawValue: kind) ?? .parent,
                body: [UInt8](try context.cipher?.open(body, for: PendingOperation.bodyPlace(id)) ?? body))
        }
    }

    /// Deletes an operation that has a result.
    func delete(_ id: String) throws {
        try context.db.execute(sql: "DELETE FROM operation WHERE id = ?", arguments: [id])
    }

    /// Whether an operation of one of these components waits for its result and is not cancelled.
    func isAwaited(of components: Set<String>) throws -> Bool {
        let marks = components.map { _ in "?" }.joined(separator: ", ")
        return try Bool.fetchOne(
            context.db,
            sql: """
                SELECT EXISTS (SELECT 1 FROM operation AS part WHERE component IN (\(marks)) AND NOT EXISTS (
                    SELECT 1 FROM operation WHERE id = part.root_id AND is_cancelled))
                """, arguments: StatementArguments(components)) ?? false
    }

    // MARK: Sending

    /// The unsent roots in order, with their children.
    ///
    /// - Parameter limit: the largest number of roots.
    func unsent(limit: Int) throws -> [SyncOperation] {
        let roots = try all(
            where: "parent_id IS NULL AND NOT is_sent AND NOT is_cancelled", []
        ).prefix(limit)
        return try roots.map { root in
            // The result can arrive in parts; the server then already has the parts with a result.
            let parts = try all(where: "root_id = ? AND parent_id IS NOT NULL", [root.id])
            return Self.wire(root, children: parts.map { Self.wire($0) })
        }
    }

    /// All descendants of a root are in one list, parents first; an operation's children have no children.
    private static func wire(_ part: PendingOperation, children: [SyncOperation] = []) -> SyncOperation {
        SyncOperation(
            id: part.id, component: part.component, key: part.key.isEmpty ? EntityLimits.noKey : part.key,
            name: part.name, body: part.body, children: children)
    }

    /// Marks roots as accepted by the submitter.
    func markSent(_ ids: [String]) throws {
        for id in ids {
            let statement = try context.db.cachedStatement(sql: "UPDATE operation SET is_sent = 1 WHERE id = ?")
            try statement.execute(arguments: [id])
        }
    }

    /// Marks all operations as unsent at start. The submitter may have lost some, and recognizes the others by their
    /// ids.
    func markAllUnsent() throws { try context.db.execute(sql: "UPDATE operation SET is_sent = 0") }

    // MARK: Cancelling

    /// Marks submissions as cancelled; they are withdrawn after the transaction.
    func setCancelled(_ roots: [String]) throws {
        for root in roots {
            try context.db.execute(
                sql: "UPDATE operation SET is_cancelled = 1 WHERE id = ? AND parent_id IS NULL", arguments: [root])
        }
    }

    /// Cancelled roots that are not withdrawn from the submitter yet.
    func cancelledRoots() throws -> [String] {
        try String.fetchAll(
            context.db, sql: "SELECT id FROM operation WHERE is_cancelled = 1 AND parent_id IS NULL ORDER BY position")
    }

    /// Deletes withdrawn submissions: no result will arrive for them.
    func deleteAll(ofRoots ids: [String]) throws {
        for id in ids { try context.db.execute(sql: "DELETE FROM operation WHERE root_id = ?", arguments: [id]) }
    }

    /// Marks submissions that could not be withdrawn. Their results can still arrive and are then handled as imports.
    func markUncancellable(_ ids: [String]) throws {
        for id in ids {
            try context.db.execute(
                sql: "UPDATE operation SET is_cancelled = 2 WHERE id = ? AND is_cancelled = 1", arguments: [id])
        }
    }

    /// Deletes cancelled operations from before a time, in milliseconds since 1970, that could not be withdrawn and
    /// have no result.
    func prune(before oldest: Int64) throws {
        try context.db.execute(
            sql: """
                DELETE FROM operation WHERE root_id IN (
                    SELECT id FROM operation WHERE is_cancelled = 2 AND created_at_ms < ?)
                """, arguments: [oldest])
    }
}
