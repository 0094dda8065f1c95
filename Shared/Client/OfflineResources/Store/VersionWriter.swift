import Foundation
import GRDB
import MobileSync

/// Stores and removes versions of the backend.
struct VersionWriter {
    let context: StoreContext
    let resources: ResourceTable
    let members: CollectionMembers
    let edits: EditQueue
    let refreshes: RefreshQueue

    /// Stores a version and replaces the former one.
    ///
    /// - Parameters:
    ///   - since: `lastChange` from before the request; nil when the version cannot be older than the stored one.
    ///   - ignoresLimit: stores the version in spite of `maxStoreSize`, because a conflict needs it.
    func store(
        _ version: ServiceVersion, owner: String, since: Int64?, now: Date, ignoresLimit: Bool = false
    ) throws -> CopyChange {
        let old = try resources.row(version.uri, owner: owner)
        let isSame = old.map { Self.isSame($0, version) } ?? false
        if let old, let since, old.change > since, !isSame, old.body != nil || old.kind == .collection {
            try context.db.execute(sql: "UPDATE resource SET is_invalid = 1 WHERE id = ?", arguments: [old.id])
            return .overtaken
        }
        let growth = version.body.count - (old?.body?.count ?? -400) + 32
        if try !ignoresLimit && !context.hasSpace(for: growth) {
            try evictOrInvalidate(version.uri, owner: owner)
            return .notStored
        }
        let id = try old?.id ?? resources.insert(version.uri, kind: version.kind, owner: owner)
        // The members are the content of a collection.
        let body = version.kind == .collection ? nil : try context.sealed(version.body, "resource/\(id)")
        try context.db.execute(
            sql: """
                UPDATE resource SET kind = ?, body = ?, content_type = ?, etag = ?, fetched_at_ms = ?, as_of_ms = ?,
                    run = ?, policy = ?, is_invalid = ?, wants_refresh = 0, change = ? WHERE id = ?
                """,
            arguments: [
                version.kind.rawValue, body, version.contentType, version.etag, now.milliseconds,
                version.asOf.milliseconds, context.run, try StoreContext.data(version.policy), version.isInvalid,
                try context.countChange(), id,
            ])
        if isSame { return .same }
        return old == nil ? .added : .changed
    }

    private static func isSame(_ old: StoredResource, _ version: ServiceVersion) -> Bool {
        if let tag = old.etag, let other = version.etag, !version.isInvalid { return tag == other }
        guard let body = old.body, version.kind != .collection else { return false }
        if body == version.body { return true }
        guard let value = JSONValue.parse(body) else { return false }
        return value == JSONValue.parse(version.body)
    }

    /// Stores a collection with its items. The collection is not stored unless all its items are.
    ///
    /// - Parameters:
    ///   - collection: its body is ignored.
    ///   - isAll: the response is the whole collection, not a page: former members that are missing have been deleted.
    /// - Returns: the change of the collection, and the URIs of changed and deleted items.
    func store(
        _ collection: ServiceVersion, items: [ServiceVersion], isAll: Bool, owner: String, since: Int64, now: Date
    ) throws -> (change: CopyChange, changed: [ResourceURI]) {
        let former = try resources.row(collection.uri, owner: owner).map { try members.uris(of: $0.id) } ?? []
        var (changed, isWhole): ([ResourceURI], Bool) = ([], true)
        for item in items {
            switch try store(item, owner: owner, since: since, now: now) {
            case .changed: changed.append(item.uri)
            case .notStored: isWhole = false
            case .added, .same, .overtaken: break
            }
        }
        var change = isWhole ? try store(collection, owner: owner, since: nil, now: now) : .notStored
        if let row = try resources.row(collection.uri, owner: owner), change != .notStored {
            let uris = items.map(\.uri.description)
            if former == uris { change = .same } else if change == .same { change = .changed }
            try members.replace(of: row.id, with: uris)
        } else {
            try resources.evict(collection.uri, owner: owner)
        }
        guard isAll else { return (change, changed) }
        let present = Set(items.map(\.uri.description))
        for text in former where !present.contains(text) {
            let uri = try ResourceURI(text)
            if try !members.isMember(text, owner: owner), try remove(uri, owner: owner) { changed.append(uri) }
        }
        return (change, changed)
    }

    /// Marks the stored version as current, with the policies of the fetch; for a collection also its items.
    func confirmNewest(_ uri: ResourceURI, policy: EffectivePolicy, asOf: Date, owner: String, now: Date) throws {
        guard let row = try resources.row(uri, owner: owner) else { return }
        let update = """
            UPDATE resource SET fetched_at_ms = ?, as_of_ms = max(as_of_ms, ?), run = ?, is_invalid = 0,
                wants_refresh = 0, policy = ?
            """
        let values: StatementArguments = [
            now.milliseconds, asOf.milliseconds, context.run, try StoreContext.data(policy),
        ]
        try context.db.execute(sql: update + " WHERE id = ?", arguments: values + [row.id])
        if row.kind == .collection {
            try context.db.execute(
                sql: update + " WHERE owner = ? AND uri IN (SELECT uri FROM member WHERE collection_id = ?)",
                arguments: values + [owner, row.id])
        }
    }

    /// Removes the backend's version of a resource. A resource with edits stays, without that version.
    ///
    /// - Returns: whether there was a version or a collection.
    @discardableResult
    func remove(_ uri: ResourceURI, owner: String) throws -> Bool {
        guard let row = try resources.row(uri, owner: owner) else { return false }
        try members.removeFromCollections(uri, owner: owner)
        if try edits.all(of: uri, owner: owner).isEmpty {
            try context.db.execute(sql: "DELETE FROM resource WHERE id = ?", arguments: [row.id])
        } else {
            try context.db.execute(
                sql: """
                    UPDATE resource SET body = NULL, etag = NULL, is_invalid = 0, wants_refresh = 0, change = ?
                    WHERE id = ?
                    """, arguments: [try context.countChange(), row.id])
        }
        return row.body != nil || row.kind == .collection
    }

    /// The cache is full: deletes the former version, or marks it as expired when it has edits.
    private func evictOrInvalidate(_ uri: ResourceURI, owner: String) throws {
        if try !resources.evict(uri, owner: owner) { try refreshes.mark(uri, refresh: false, owner: owner) }
    }
}
