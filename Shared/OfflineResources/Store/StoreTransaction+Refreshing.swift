import Foundation
import GRDB
import MobileSync

/// Which copies are to be fetched again, and what pushes say of them.
extension StoreTransaction {
    /// A copy that is to be fetched.
    struct Wish: Sendable, Hashable {
        let uri: ResourceURI
        let kind: ResourceKind
    }

    /// Marks a copy as expired, and perhaps as one to be fetched.
    func mark(_ uri: ResourceURI, refresh: Bool, owner: String) throws {
        try db.execute(
            sql: """
                UPDATE resource SET is_invalid = 1, wants_refresh = max(wants_refresh, ?) WHERE owner = ? AND uri = ?
                """, arguments: [refresh, owner, uri.description])
    }

    /// Has a copy fetched, expired or not.
    ///
    /// - Returns: false when it is not here.
    func wish(for uri: ResourceURI, owner: String) throws -> Bool {
        try db.execute(
            sql: "UPDATE resource SET wants_refresh = 1 WHERE owner = ? AND uri = ?",
            arguments: [owner, uri.description])
        return db.changesCount > 0
    }

    /// Fetching it failed in a way that another attempt would not change.
    func giveUpWish(for uri: ResourceURI, owner: String) throws {
        try db.execute(
            sql: "UPDATE resource SET wants_refresh = 0 WHERE owner = ? AND uri = ?",
            arguments: [owner, uri.description])
    }

    /// Has everything of a user fetched that has expired, but not items whose collection is fetched anyway.
    func wishForExpired(owner: String, now: Date) throws {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT id, fetched_at_ms, run, policy, is_invalid FROM resource
                WHERE owner = ? AND NOT wants_refresh AND (body IS NOT NULL OR kind = 'collection')
                """, arguments: [owner])
        for row in rows {
            let state = CopyState.of(
                try Self.policy(row["policy"]), fetchedAt: Date(milliseconds: row["fetched_at_ms"]), run: row["run"],
                isInvalid: row["is_invalid"], now: now, currentRun: run)
            guard state == .expired else { continue }
            try db.execute(
                sql: "UPDATE resource SET wants_refresh = 1 WHERE id = ?", arguments: [row["id"] as Int64])
        }
        try db.execute(
            sql: """
                UPDATE resource SET wants_refresh = 0 WHERE owner = ? AND wants_refresh AND kind = 'item'
                    AND pin IS NULL AND uri IN (SELECT member.uri FROM member JOIN resource AS collection
                        ON collection.id = collection_id WHERE collection.owner = ? AND collection.wants_refresh)
                """, arguments: [owner, owner])
    }

    /// What is to be fetched for a user, the most urgent first.
    ///
    /// - Parameter pins: of these urgencies; what is not pinned counts as normal.
    func wishes(owner: String, pins: Set<PinPriority>) throws -> [Wish] {
        let rows = try Row.fetchAll(
            db, sql: "SELECT uri, kind, pin FROM resource WHERE owner = ? AND wants_refresh ORDER BY id",
            arguments: [owner])
        return try PinPriority.allCases.filter(pins.contains).flatMap { pin in
            try rows.filter { ($0["pin"] as String?).flatMap(PinPriority.init) ?? .normal == pin }.map { row in
                Wish(uri: try ResourceURI(row["uri"]), kind: ResourceKind(rawValue: row["kind"]) ?? .item)
            }
        }
    }

    /// - Returns: false when it is not here.
    func pin(_ uri: ResourceURI, _ pin: PinPriority?, owner: String) throws -> Bool {
        try db.execute(
            sql: "UPDATE resource SET pin = ? WHERE owner = ? AND uri = ?",
            arguments: [pin?.rawValue, owner, uri.description])
        return db.changesCount > 0
    }

    // MARK: Pushes

    /// Does what a push says of one resource.
    ///
    /// - Parameters:
    ///   - owner: whom it is for; nil: everybody's copies. Only the present user's are fetched or replaced by a body
    ///     that was pushed to everybody.
    ///   - present: the user who is bound.
    ///   - pushedAt: by the service's clock.
    /// - Returns: copies of the present user that changed or have gone.
    func apply(
        _ change: ResourcePush.Change, owner: String?, present: String, pushedAt: Date, now: Date
    ) throws -> [ResourceURI] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT owner, uri FROM resource
                WHERE (owner = ?1 OR ?1 IS NULL) AND (uri = ?2 OR (path = ?2 AND kind = 'collection'))
                """, arguments: [owner, change.uri.description])
        var changed: [ResourceURI] = []
        for row in rows {
            let (whose, uri): (String, ResourceURI) = (row[0], try ResourceURI(row[1]))
            guard let copy = try resource(uri, owner: whose) else { continue }
            let isChanged = try apply(
                change, to: copy, owner: whose, mayReplace: whose == present || owner != nil,
                pushedAt: pushedAt, now: now)
            if isChanged, whose == present { changed.append(uri) }
        }
        return changed
    }

    private func apply(
        _ change: ResourcePush.Change, to copy: StoredResource, owner: String, mayReplace: Bool,
        pushedAt: Date, now: Date
    ) throws -> Bool {
        switch PushVerdict(change, copyTag: copy.etag, asOf: copy.asOf, pushedAt: pushedAt) {
        case .known: return false
        case .marked:
            try mark(copy.uri, refresh: false, owner: owner)
            return false
        case .deleted: return try remove(copy.uri, owner: owner)
        case .replaced where mayReplace && copy.kind == .item:
            let version = ServiceVersion(
                uri: copy.uri, kind: .item, body: change.body ?? [], contentType: copy.contentType, etag: change.etag,
                asOf: pushedAt, policy: copy.policy)
            return try store(version, owner: owner, since: nil, now: now) == .changed
        case .replaced, .fetched:
            // Another user's is fetched when that one comes back.
            try mark(copy.uri, refresh: true, owner: owner)
            return false
        }
    }
}
