import Foundation
import GRDB
import MobileSync

/// What can be read and changed in one transaction of the store.
struct StoreTransaction {
    let db: Database
    let cipher: (any ResourceCipher)?
    /// Bytes that resources and edits may take.
    let limit: Int
    /// This start of the app.
    let run: Int64

    private static let resourceColumns = """
        id, uri, kind, body, content_type, etag, fetched_at_ms, as_of_ms, run, policy, pin, is_invalid, change
        """

    // MARK: Reading

    /// The number of the newest version; one that is stored later has a higher one.
    func lastChange() throws -> Int64 { try Int64.fetchOne(db, sql: "SELECT change FROM store") ?? 0 }

    /// Where the service has what goes by another URI here: what was created under a place of our own, with what is
    /// below that, and what was put where the service has named another place. Any other URI as it is.
    ///
    /// A place of the service's may come to have something else: it means what was put there while that is here, and
    /// nothing else is at the place itself.
    func located(_ uri: ResourceURI, owner: String) throws -> ResourceURI {
        for name in uri.lineage where name.isLocal || name.path == uri.path {
            let place = try String.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT alias.uri FROM alias WHERE alias.owner = ?1 AND alias.local_uri = ?2 AND (?3 OR (
                            EXISTS (SELECT 1 FROM resource WHERE resource.owner = ?1 AND resource.uri = alias.uri)
                            AND NOT EXISTS (SELECT 1 FROM resource WHERE resource.owner = ?1 AND resource.uri = ?2)))
                        """), arguments: [owner, name.path, name.isLocal])
            if let place {
                return try located(ResourceURI(place + uri.description.dropFirst(name.path.count)), owner: owner)
            }
        }
        return uri
    }

    func resource(_ uri: ResourceURI, owner: String) throws -> StoredResource? {
        let row = try Row.fetchOne(
            db.cachedStatement(
                sql: "SELECT \(Self.resourceColumns) FROM resource WHERE owner = ? AND uri = ?"),
            arguments: [owner, uri.description])
        return try row.map(resource)
    }

    /// A resource with its edits; nil when nothing is here. A collection is `missing` when it is empty, or lacks an
    /// item.
    func copy(_ uri: ResourceURI, owner: String, now: Date) throws -> LocalCopy? {
        guard let resource = try resource(uri, owner: owner) else { return nil }
        return try copy(resource, owner: owner, now: now)
    }

    private func copy(_ resource: StoredResource, owner: String, now: Date) throws -> LocalCopy {
        let edits = try edits(of: resource.uri, owner: owner)
        var state = CopyState.of(
            resource.policy, fetchedAt: resource.fetchedAt, run: resource.run, isInvalid: resource.isInvalid, now: now,
            currentRun: run)
        if resource.kind == .collection {
            if try !isWhole(resource, owner: owner) { state = .missing }
        } else if resource.body == nil {
            // What was made here is the newest there is; what the service has deleted is not there.
            state = edits.isEmpty ? .missing : .fresh
        }
        return LocalCopy(resource: resource, edits: edits, state: state)
    }

    private func isWhole(_ collection: StoredResource, owner: String) throws -> Bool {
        let row = try Row.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT count(*), count(resource.id) FROM member
                    LEFT JOIN resource ON resource.owner = ? AND resource.uri = member.uri WHERE collection_id = ?
                    """), arguments: [owner, collection.id])
        guard let row else { return false }
        let (members, present): (Int, Int) = (row[0], row[1])
        return members > 0 && members == present
    }

    /// The items of a cached collection in the service's order, and after them what was created in it here, unless it
    /// is one page of several. What is deleted here is left out.
    func items(of collection: StoredResource, owner: String, now: Date) throws -> [LocalCopy] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT \(Self.resourceColumns.split(separator: ",").map { "resource.\($0.trimmed)" }.joined(separator: ","))
                FROM member JOIN resource ON resource.owner = ? AND resource.uri = member.uri
                WHERE collection_id = ? ORDER BY position
                """, arguments: [owner, collection.id])
        var items = try rows.map { try copy(resource($0), owner: owner, now: now) }
        if collection.uri.query == nil {
            items += try children(of: collection.uri.path, owner: owner, now: now).filter(\.resource.uri.isLocal)
        }
        return items.filter { $0.body != nil }
    }

    /// Items that are one level below a path, in the order of their URIs, as far as they are here.
    func children(of path: String, owner: String, now: Date) throws -> [LocalCopy] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT \(Self.resourceColumns) FROM resource WHERE owner = ? AND parent = ? AND kind = ? ORDER BY uri
                """, arguments: [owner, path, ResourceKind.item.rawValue])
        return try rows.map { try copy(resource($0), owner: owner, now: now) }.filter { $0.body != nil }
    }

    private func resource(_ row: Row) throws -> StoredResource {
        let id: Int64 = row["id"]
        return StoredResource(
            id: id, uri: try ResourceURI(row["uri"]), kind: ResourceKind(rawValue: row["kind"]) ?? .item,
            body: try (row["body"] as Data?).map { try opened($0, "resource/\(id)") },
            contentType: row["content_type"], etag: row["etag"],
            fetchedAt: Date(milliseconds: row["fetched_at_ms"]), asOf: Date(milliseconds: row["as_of_ms"]),
            run: row["run"], policy: try Self.policy(row["policy"]),
            pin: (row["pin"] as String?).flatMap(PinPriority.init), isInvalid: row["is_invalid"],
            change: row["change"])
    }

    static func policy(_ data: Data) throws -> EffectivePolicy {
        try JSONDecoder().decode(EffectivePolicy.self, from: data)
    }

    static func data(_ policy: EffectivePolicy) throws -> Data { try JSONEncoder().encode(policy) }

    // MARK: Sealing and space

    func sealed(_ body: [UInt8], _ place: String) throws -> Data {
        Data(try cipher?.seal(body, for: place) ?? body)
    }

    func opened(_ stored: Data, _ place: String) throws -> [UInt8] {
        try cipher?.open([UInt8](stored), for: place) ?? [UInt8](stored)
    }

    /// Writes every body anew; they were not sealed before.
    func reseal(with cipher: any ResourceCipher) throws {
        for (table, key) in [("resource", "id"), ("edit", "seq")] {
            for id in try Int64.fetchAll(db, sql: "SELECT \(key) FROM \(table) WHERE body IS NOT NULL") {
                let body = try Data.fetchOne(db, sql: "SELECT body FROM \(table) WHERE \(key) = ?", arguments: [id])
                let sealed = Data(try cipher.seal([UInt8](body ?? Data()), for: "\(table)/\(id)"))
                try db.execute(sql: "UPDATE \(table) SET body = ? WHERE \(key) = ?", arguments: [sealed, id])
            }
        }
    }

    /// Whether so many bytes more are within `maxStoreSize`.
    func hasRoom(for bytes: Int) throws -> Bool {
        let used = try Int.fetchOne(db.cachedStatement(sql: "SELECT used_bytes FROM store")) ?? 0
        return used + bytes <= limit
    }

    // MARK: Batches

    /// Where the service takes many edits at once; nil: nowhere, as far as is known.
    func batchPath() throws -> String? { try String.fetchOne(db, sql: "SELECT batch_path FROM store") }

    func setBatchPath(_ path: String?) throws {
        try db.execute(sql: "UPDATE store SET batch_path = ?", arguments: [path])
    }
}

extension Substring {
    /// Without the blanks and line breaks around it.
    fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
