import Foundation
import GRDB
import MobileSync

/// The copies that must be fetched again, and their priorities.
struct RefreshQueue {
    let context: StoreContext

    /// A copy that must be fetched again.
    struct Request: Sendable, Hashable {
        let uri: ResourceURI
        let kind: ResourceKind
    }

    /// Marks a copy as expired, and requests a refresh when `refresh` is true.
    func mark(_ uri: ResourceURI, refresh: Bool, owner: String) throws {
        try context.db.execute(
            sql: """
                UPDATE resource SET is_invalid = 1, wants_refresh = max(wants_refresh, ?) WHERE owner = ? AND uri = ?
                """, arguments: [refresh, owner, uri.description])
    }

    /// Requests a refresh of a copy, expired or not.
    ///
    /// - Returns: false when there is no copy.
    func request(_ uri: ResourceURI, owner: String) throws -> Bool {
        try context.db.execute(
            sql: "UPDATE resource SET wants_refresh = 1 WHERE owner = ? AND uri = ?",
            arguments: [owner, uri.description])
        return context.db.changesCount > 0
    }

    /// Ends a refresh request: another attempt would have the same result.
    func endRequest(for uri: ResourceURI, owner: String) throws {
        try context.db.execute(
            sql: "UPDATE resource SET wants_refresh = 0 WHERE owner = ? AND uri = ?",
            arguments: [owner, uri.description])
    }

    /// Requests a refresh of all expired copies of a user, except items whose collection is refreshed.
    func requestExpired(owner: String, now: Date) throws {
        let rows = try Row.fetchAll(
            context.db,
            sql: """
                SELECT id, fetched_at_ms, run, policy, is_invalid FROM resource
                WHERE owner = ? AND NOT wants_refresh AND (body IS NOT NULL OR kind = 'collection')
                """, arguments: [owner])
        for row in rows {
            let state = CopyState.of(
                try StoreContext.policy(row["policy"]), fetchedAt: Date(milliseconds: row["fetched_at_ms"]),
                run: row["run"],
                isInvalid: row["is_invalid"], now: now, currentRun: context.run)
            guard state == .expired else { continue }
            try context.db.execute(
                sql: "UPDATE resource SET wants_refresh = 1 WHERE id = ?", arguments: [row["id"] as Int64])
        }
        try context.db.execute(
            sql: """
                UPDATE resource SET wants_refresh = 0 WHERE owner = ? AND wants_refresh AND kind = 'item'
                    AND pin IS NULL AND uri IN (SELECT member.uri FROM member JOIN resource AS collection
                        ON collection.id = collection_id WHERE collection.owner = ? AND collection.wants_refresh)
                """, arguments: [owner, owner])
    }

    /// The refresh requests of a user, the most urgent first.
    ///
    /// - Parameter includesLow: whether copies with the priority `Low` are included.
    func requests(owner: String, includesLow: Bool) throws -> [Request] {
        try Row.fetchAll(
            context.db,
            sql: """
                SELECT uri, kind FROM resource WHERE owner = ? AND wants_refresh AND \(StoreSchema.pinRank) <= ?
                ORDER BY \(StoreSchema.pinRank), id
                """, arguments: [owner, PinPriority.rank(of: includesLow ? .low : nil)]
        ).map { row in
            Request(uri: try ResourceURI(row["uri"]), kind: ResourceKind(rawValue: row["kind"]) ?? .item)
        }
    }

    /// Sets the priority of a copy; nil: not pinned.
    ///
    /// - Returns: false when there is no copy.
    func pin(_ uri: ResourceURI, _ pin: PinPriority?, owner: String) throws -> Bool {
        try context.db.execute(
            sql: "UPDATE resource SET pin = ? WHERE owner = ? AND uri = ?",
            arguments: [pin?.rawValue, owner, uri.description])
        return context.db.changesCount > 0
    }
}
