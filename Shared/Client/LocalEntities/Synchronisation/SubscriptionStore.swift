import GRDB

/// The subscriptions of the entity types, and the recoveries that must be requested.
struct SubscriptionStore {
    let context: TransactionContext

    /// Whether the type is subscribed.
    func isSubscribed(_ typeName: String) throws -> Bool {
        try Bool.fetchOne(
            context.db.cachedStatement(sql: "SELECT is_subscribed FROM entity_type WHERE name = ?"),
            arguments: [typeName])
            ?? true
    }

    /// Sets whether imports of the type are accepted.
    func setSubscribed(_ isSubscribed: Bool, _ typeName: String) throws {
        try context.db.execute(
            sql: "UPDATE entity_type SET is_subscribed = ? WHERE name = ?", arguments: [isSubscribed, typeName])
    }

    /// Sets whether a recovery of the type must be requested.
    func setNeedsRecovery(_ needsRecovery: Bool, _ typeName: String) throws {
        try context.db.execute(
            sql: "UPDATE entity_type SET needs_recovery = ? WHERE name = ?", arguments: [needsRecovery, typeName])
    }

    /// Whether a recovery of the type must be requested.
    func needsRecovery(_ typeName: String) throws -> Bool {
        try Bool.fetchOne(
            context.db, sql: "SELECT needs_recovery FROM entity_type WHERE name = ?", arguments: [typeName]) ?? false
    }

    /// Deletes the type's rows.
    ///
    /// - Parameter keepsPending: rows with an edit stay.
    func clean(_ type: EntityType, keepsPending: Bool) throws {
        let condition = keepsPending ? "pending_change = 'N'" : "1"
        let rows = RowStore(context: context)
        for row in try context.table(type.name).rows(where: condition, [], in: context.db, cipher: context.cipher) {
            try rows.remove(row, of: type)
        }
        // The recovery sends older versions again, so their counters must not be compared with deletions.
        try TombstoneStore(context: context).removeAll(of: type.name)
    }
}
