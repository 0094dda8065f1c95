import Foundation
import GRDB
import MobileSync

/// Versions that come from the service.
extension StoreTransaction {
    /// Stores a version in place of the one that is here.
    ///
    /// - Parameters:
    ///   - since: `lastChange` from before the request, or nil when the version cannot be an older one than what is
    ///     here.
    ///   - ignoresLimit: somebody has to see it, whatever room there is.
    func store(
        _ version: ServiceVersion, owner: String, since: Int64?, now: Date, ignoresLimit: Bool = false
    ) throws -> CopyChange {
        let old = try resource(version.uri, owner: owner)
        let isSame = old.map { Self.isSame($0, version) } ?? false
        if let old, let since, old.change > since, !isSame, old.body != nil || old.kind == .collection {
            try db.execute(sql: "UPDATE resource SET is_invalid = 1 WHERE id = ?", arguments: [old.id])
            return .overtaken
        }
        let growth = version.body.count - (old?.body?.count ?? -400) + 32
        if try !ignoresLimit && !hasRoom(for: growth) {
            try makeWay(for: version.uri, owner: owner)
            return .notStored
        }
        let id = try old?.id ?? insert(version.uri, kind: version.kind, owner: owner)
        // A collection is its members.
        let body = version.kind == .collection ? nil : try sealed(version.body, "resource/\(id)")
        try db.execute(
            sql: """
                UPDATE resource SET kind = ?, body = ?, content_type = ?, etag = ?, fetched_at_ms = ?, as_of_ms = ?,
                    run = ?, policy = ?, is_invalid = ?, wants_refresh = 0, change = ? WHERE id = ?
                """,
            arguments: [
                version.kind.rawValue, body, version.contentType, version.etag, now.milliseconds,
                version.asOf.milliseconds, run, try Self.data(version.policy), version.isInvalid, try countChange(), id,
            ])
        if isSame { return .same }
        return old == nil ? .added : .changed
    }

    private static func isSame(_ old: StoredResource, _ version: ServiceVersion) -> Bool {
        if let tag = old.etag, let other = version.etag, !version.isInvalid { return tag == other }
        guard let body = old.body, version.kind != .collection else { return false }
        if body == version.body { return true }
        guard let value = ResourceValue.parse(body) else { return false }
        return value == ResourceValue.parse(version.body)
    }

    /// Stores a collection with its items; it is not stored when not all of them are.
    ///
    /// - Parameters:
    ///   - collection: its body does not matter.
    ///   - isAll: no page of several: items that were in it and are not any more have gone.
    /// - Returns: what became of the collection, and the URIs of items that changed or have gone.
    func store(
        _ collection: ServiceVersion, items: [ServiceVersion], isAll: Bool, owner: String, since: Int64, now: Date
    ) throws -> (change: CopyChange, changed: [ResourceURI]) {
        let former = try resource(collection.uri, owner: owner).map { try members(of: $0.id) } ?? []
        var (changed, isWhole): ([ResourceURI], Bool) = ([], true)
        for item in items {
            switch try store(item, owner: owner, since: since, now: now) {
            case .changed: changed.append(item.uri)
            case .notStored: isWhole = false
            case .added, .same, .overtaken: break
            }
        }
        var change = isWhole ? try store(collection, owner: owner, since: nil, now: now) : .notStored
        if let row = try resource(collection.uri, owner: owner), change != .notStored {
            let uris = items.map(\.uri.description)
            if former == uris { change = .same } else if change == .same { change = .changed }
            try db.execute(sql: "DELETE FROM member WHERE collection_id = ?", arguments: [row.id])
            for (position, uri) in uris.enumerated() { try add(uri, to: row.id, at: position) }
        } else {
            try evict(collection.uri, owner: owner)
        }
        guard isAll else { return (change, changed) }
        let present = Set(items.map(\.uri.description))
        for text in former where !present.contains(text) {
            let uri = try ResourceURI(text)
            if try !isMember(text, owner: owner), try remove(uri, owner: owner) { changed.append(uri) }
        }
        return (change, changed)
    }

    /// Notes that the version here is the newest; a collection's with its items.
    func confirmNewest(_ uri: ResourceURI, policy: EffectivePolicy, asOf: Date, owner: String, now: Date) throws {
        guard let row = try resource(uri, owner: owner) else { return }
        let update = """
            UPDATE resource SET fetched_at_ms = ?, as_of_ms = max(as_of_ms, ?), run = ?, is_invalid = 0,
                wants_refresh = 0
            """
        let values: StatementArguments = [now.milliseconds, asOf.milliseconds, run]
        try db.execute(
            sql: update + ", policy = ? WHERE id = ?", arguments: values + [try Self.data(policy), row.id])
        if row.kind == .collection {
            try db.execute(
                sql: update + " WHERE owner = ? AND uri IN (SELECT uri FROM member WHERE collection_id = ?)",
                arguments: values + [owner, row.id])
        }
    }

    /// The service has it no more. With edits it stays, without a version of the service's.
    ///
    /// - Returns: whether it was here.
    @discardableResult
    func remove(_ uri: ResourceURI, owner: String) throws -> Bool {
        guard let row = try resource(uri, owner: owner) else { return false }
        try leaveCollections(uri, owner: owner)
        if try edits(of: uri, owner: owner).isEmpty {
            try db.execute(sql: "DELETE FROM resource WHERE id = ?", arguments: [row.id])
        } else {
            try db.execute(
                sql: """
                    UPDATE resource SET body = NULL, etag = NULL, is_invalid = 0, wants_refresh = 0, change = ?
                    WHERE id = ?
                    """, arguments: [try countChange(), row.id])
        }
        return row.body != nil || row.kind == .collection
    }

    /// Deletes the local copy, unless it has edits.
    ///
    /// - Returns: whether it is gone.
    @discardableResult
    func evict(_ uri: ResourceURI, owner: String) throws -> Bool {
        try db.execute(
            sql: "DELETE FROM resource WHERE owner = ? AND uri = ? AND \(StoreSchema.hasNoEdits)",
            arguments: [owner, uri.description])
        return db.changesCount > 0
    }

    /// Deletes all copies of a user that have no edits.
    func evictAll(owner: String) throws {
        try db.execute(
            sql: "DELETE FROM resource WHERE owner = ? AND \(StoreSchema.hasNoEdits)", arguments: [owner])
    }

    /// A version that finds no room makes the one here an old one.
    private func makeWay(for uri: ResourceURI, owner: String) throws {
        if try !evict(uri, owner: owner) { try mark(uri, refresh: false, owner: owner) }
    }

    /// Makes the row of a resource that is to be filled in.
    func insert(_ uri: ResourceURI, kind: ResourceKind, owner: String) throws -> Int64 {
        try db.execute(
            sql: """
                INSERT INTO resource (owner, uri, path, parent, kind, fetched_at_ms, as_of_ms, run, policy, change)
                VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?, ?)
                """,
            arguments: [
                owner, uri.description, uri.path, uri.parentPath, kind.rawValue, run,
                try Self.data(.libraryDefault(of: kind)), try countChange(),
            ])
        return db.lastInsertedRowID
    }

    func countChange() throws -> Int64 {
        try Int64.fetchOne(db.cachedStatement(sql: "UPDATE store SET change = change + 1 RETURNING change")) ?? 0
    }

    // MARK: Members

    private func members(of id: Int64) throws -> [String] {
        try String.fetchAll(
            db, sql: "SELECT uri FROM member WHERE collection_id = ? ORDER BY position", arguments: [id])
    }

    private func add(_ uri: String, to id: Int64, at position: Int) throws {
        try db.cachedStatement(sql: "INSERT INTO member VALUES (?, ?, ?)").execute(arguments: [id, position, uri])
    }

    /// Puts what was created here into its collection, if that is here as a whole.
    func append(_ uri: ResourceURI, owner: String) throws {
        guard let row = try resource(ResourceURI(uri.parentPath), owner: owner), row.kind == .collection,
            try !members(of: row.id).contains(uri.description)
        else { return }
        // Not their number: items that have gone leave gaps.
        let position = try Int.fetchOne(
            db, sql: "SELECT max(position) + 1 FROM member WHERE collection_id = ?", arguments: [row.id])
        try add(uri.description, to: row.id, at: position ?? 0)
    }

    /// Takes a resource out of all collections that have it.
    func leaveCollections(_ uri: ResourceURI, owner: String) throws {
        try db.execute(
            sql: "DELETE FROM member WHERE uri = ? AND collection_id IN (SELECT id FROM resource WHERE owner = ?)",
            arguments: [uri.description, owner])
    }

    private func isMember(_ uri: String, owner: String) throws -> Bool {
        try Bool.fetchOne(
            db,
            sql: """
                SELECT EXISTS (SELECT 1 FROM member JOIN resource ON resource.id = collection_id
                    WHERE member.uri = ? AND owner = ?)
                """, arguments: [uri, owner]) ?? false
    }
}
