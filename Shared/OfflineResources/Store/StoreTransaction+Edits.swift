import Foundation
import GRDB

/// The queue of edits: how they are added, found and taken back.
extension StoreTransaction {
    private static let editColumns = """
        seq, edit_id, uri, kind, body, content_type, base_etag, conflict_policy, is_unconditional, state, is_offline,
        status, message
        """

    private func edit(_ row: Row) throws -> StoredEdit {
        let seq: Int64 = row["seq"]
        return StoredEdit(
            seq: seq, id: row["edit_id"], uri: try ResourceURI(row["uri"]),
            kind: EditKind(rawValue: row["kind"]) ?? .update, body: try opened(row["body"], "edit/\(seq)"),
            contentType: row["content_type"], baseTag: row["base_etag"],
            conflictPolicy: ConflictResolutionPolicy(rawValue: row["conflict_policy"]) ?? .preserveConflict,
            isUnconditional: row["is_unconditional"], state: EditState(rawValue: row["state"]) ?? .sent,
            isOffline: row["is_offline"], status: row["status"], message: row["message"])
    }

    // MARK: Finding

    /// In the order in which they were made.
    func edits(of uri: ResourceURI, owner: String) throws -> [StoredEdit] {
        try Row.fetchAll(
            db.cachedStatement(
                sql: "SELECT \(Self.editColumns) FROM edit WHERE owner = ? AND uri = ? ORDER BY seq"),
            arguments: [owner, uri.description]
        ).map(edit)
    }

    func edit(_ seq: Int64) throws -> StoredEdit? {
        try Row.fetchOne(db, sql: "SELECT \(Self.editColumns) FROM edit WHERE seq = ?", arguments: [seq]).map(edit)
    }

    /// Resources of a user that have edits, in the order of the first one.
    func editedResources(owner: String) throws -> [ResourceURI] {
        try String.fetchAll(
            db, sql: "SELECT uri FROM edit WHERE owner = ? GROUP BY uri ORDER BY min(seq)", arguments: [owner]
        ).map { text in try ResourceURI(text) }
    }

    /// The edits that can be sent now, in order: behind one that the service has refused, or that somebody has to
    /// decide about, those of the same resource wait; so do those below a place that the service has not named yet.
    ///
    /// - Parameters:
    ///   - after: only later ones.
    ///   - limit: of edits.
    func sendable(after seq: Int64, limit: Int, owner: String) throws -> [StoredEdit] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT seq, uri, kind FROM edit WHERE owner = ?1 AND seq > ?2 AND state IN (0, 1)
                    AND NOT EXISTS (SELECT 1 FROM edit AS earlier WHERE earlier.owner = ?1 AND earlier.uri = edit.uri
                        AND earlier.seq < edit.seq AND earlier.state IN (2, 3)) ORDER BY seq
                """, arguments: [owner, seq])
        var found: [StoredEdit] = []
        for row in rows where found.count < limit {
            let uri = try ResourceURI(row["uri"])
            let isCreate = row["kind"] == EditKind.create.rawValue
            let target = isCreate ? try ResourceURI(uri.parentPath) : uri
            if target.isLocal { continue }
            if let edit = try edit(row["seq"] as Int64) { found.append(edit) }
        }
        return found
    }

    func hasWaitingEdits(owner: String) throws -> Bool {
        try !sendable(after: 0, limit: 1, owner: owner).isEmpty
    }

    // MARK: Adding

    /// Adds an edit, or makes it one with what is there where that is safe (`EditMerge`).
    ///
    /// - Parameter mayMerge: false: it must be possible to take it back by itself.
    /// - Returns: the edit it became; nil when it cancelled out what was never sent.
    /// - Throws: `ResourceError.storeFull`; nothing is changed then.
    func add(_ draft: EditDraft, owner: String, mayMerge: Bool) throws -> StoredEdit? {
        guard try hasRoom(for: draft.body.count + 1_000) else {
            throw ResourceError(
                .storeFull, "the edit of \(draft.uri) finds no room within maxStoreSize; evict what is not needed")
        }
        let present = try edits(of: draft.uri, owner: owner)
        let row = try resource(draft.uri, owner: owner)
        if row == nil { _ = try insert(draft.uri, kind: .item, owner: owner) }
        try db.execute(
            sql: "UPDATE resource SET policy = ? WHERE owner = ? AND uri = ?",
            arguments: [try Self.data(draft.policy), owner, draft.uri.description])
        if present.contains(where: { !$0.state.isWaiting }) {
            return try collapse(draft.uri, adding: draft, owner: owner)
        }
        if mayMerge, let last = present.last, last.state == .queued, try isNewest(last, owner: owner),
            last.conflictPolicy == draft.policy.conflictResolutionPolicy
        {
            switch EditMerge((last.kind, last.body), (draft.kind, draft.body)) {
            case .one(let kind, let body):
                try db.execute(
                    sql: "UPDATE edit SET kind = ?, body = ?, content_type = ?, is_offline = ? WHERE seq = ?",
                    arguments: [
                        kind.rawValue, try sealed(body, "edit/\(last.seq)"),
                        draft.kind == .patch ? last.contentType : draft.contentType,
                        last.isOffline || draft.isOffline, last.seq,
                    ])
                return try edit(last.seq)
            case .none:
                try db.execute(sql: "DELETE FROM edit WHERE seq = ?", arguments: [last.seq])
                try removeIfNothing(draft.uri, owner: owner)
                return nil
            case .two: break
            }
        }
        // On top of edits that are here it is made on what these make of the resource.
        let base = present.last.map(\.baseTag) ?? row?.etag
        return try insert(draft, base: base, isUnconditional: false, owner: owner)
    }

    private func isNewest(_ edit: StoredEdit, owner: String) throws -> Bool {
        try Int64.fetchOne(db, sql: "SELECT max(seq) FROM edit WHERE owner = ?", arguments: [owner]) == edit.seq
    }

    private func insert(
        _ draft: EditDraft, base: String?, isUnconditional: Bool, owner: String
    ) throws -> StoredEdit? {
        try db.execute(
            sql: """
                INSERT INTO edit (owner, edit_id, uri, kind, body, content_type, base_etag, conflict_policy,
                    is_unconditional, is_offline) VALUES (?, ?, ?, ?, x'', ?, ?, ?, ?, ?)
                """,
            arguments: [
                owner, draft.id, draft.uri.description, draft.kind.rawValue, draft.contentType, base,
                draft.policy.conflictResolutionPolicy.rawValue, isUnconditional, draft.isOffline,
            ])
        let seq = db.lastInsertedRowID
        try db.execute(
            sql: "UPDATE edit SET body = ? WHERE seq = ?", arguments: [try sealed(draft.body, "edit/\(seq)"), seq])
        return try edit(seq)
    }

    /// Makes one edit of all that there are of a resource, of which the service has refused one: none of them, and none
    /// behind it, has been applied.
    ///
    /// A conflict stays one until it is resolved; what was refused is tried again.
    private func collapse(_ uri: ResourceURI, adding draft: EditDraft, owner: String) throws -> StoredEdit? {
        let present = try edits(of: uri, owner: owner)
        let isConflict = present.contains { $0.state == .conflict }
        let edit = try replaceEdits(
            of: uri,
            with: LocalVersion.of(
                resource(uri, owner: owner)?.body,
                edits: present.map { ($0.kind, $0.body) } + [(draft.kind, draft.body)]),
            draft: draft, base: present.first?.baseTag, isUnconditional: present.first?.isUnconditional ?? false,
            owner: owner)
        if isConflict, let edit { try settle(edit.seq, as: .conflict, status: nil, message: nil) }
        return try edit.flatMap { try self.edit($0.seq) }
    }

    /// Puts one edit in the place of all that a resource has.
    ///
    /// - Parameters:
    ///   - body: what the resource is to be; nil: deleted.
    ///   - draft: gives the id, the policy and the form.
    private func replaceEdits(
        of uri: ResourceURI, with body: [UInt8]?, draft: EditDraft, base: String?, isUnconditional: Bool,
        owner: String
    ) throws -> StoredEdit? {
        let present = try edits(of: uri, owner: owner)
        try db.execute(sql: "DELETE FROM edit WHERE owner = ? AND uri = ?", arguments: [owner, uri.description])
        let isNew = present.first?.kind == .create || uri.isLocal
        guard let body else {
            if isNew || isUnconditional {
                try removeIfNothing(uri, owner: owner)
                return nil
            }
            let deletion = EditDraft(
                id: draft.id, uri: uri, kind: .delete, body: [], contentType: draft.contentType, policy: draft.policy,
                isOffline: draft.isOffline)
            return try insert(deletion, base: base, isUnconditional: false, owner: owner)
        }
        let contentType = draft.kind == .patch ? "application/json" : draft.contentType
        let whole = EditDraft(
            id: draft.id, uri: uri, kind: isNew ? .create : .update, body: body, contentType: contentType,
            policy: draft.policy, isOffline: draft.isOffline)
        return try insert(whole, base: base, isUnconditional: isUnconditional, owner: owner)
    }

    /// A resource that the service does not have is gone with its last edit.
    func removeIfNothing(_ uri: ResourceURI, owner: String) throws {
        try db.execute(
            sql: """
                DELETE FROM resource WHERE owner = ? AND uri = ? AND body IS NULL AND kind <> 'collection'
                    AND \(StoreSchema.hasNoEdits)
                """, arguments: [owner, uri.description])
    }

    // MARK: Taking back

    /// Takes back all edits of a resource; the service's version stays. What was created in vain below a place of our
    /// own goes with it.
    ///
    /// - Returns: whether there were any.
    func discardEdits(of uri: ResourceURI, owner: String) throws -> Bool {
        var (found, uris) = (false, [uri])
        if uri.isLocal {
            uris += try editedResources(owner: owner).filter { $0.path.hasPrefix(uri.path + "/") }
        }
        for uri in uris {
            let present = try edits(of: uri, owner: owner)
            guard !present.isEmpty else { continue }
            found = true
            try db.execute(sql: "DELETE FROM edit WHERE owner = ? AND uri = ?", arguments: [owner, uri.description])
            // The service may have it nevertheless.
            if present.contains(where: { $0.state == .sent }) { try mark(uri, refresh: true, owner: owner) }
            try removeIfNothing(uri, owner: owner)
        }
        return found
    }

    /// Has what the service refused tried once more.
    ///
    /// - Parameter makeID: for a new `Idempotency-Key`: the former one has been answered.
    func retryRefused(_ uri: ResourceURI, owner: String, makeID: () -> String) throws -> Bool {
        let refused = try edits(of: uri, owner: owner).filter { $0.state == .refused }
        for edit in refused {
            try db.execute(
                sql: "UPDATE edit SET state = 0, status = NULL, message = NULL, edit_id = ? WHERE seq = ?",
                arguments: [makeID(), edit.seq])
        }
        return !refused.isEmpty
    }

    /// Ends a conflict.
    ///
    /// - Parameters:
    ///   - body: what the resource is to be: nil: deleted.
    ///   - id: the new edit's.
    /// - Returns: false when the resource has no conflict.
    func resolve(_ uri: ResourceURI, with resolution: ConflictResolution, id: String, owner: String) throws -> Bool {
        let present = try edits(of: uri, owner: owner)
        guard let conflict = present.first(where: { $0.state == .conflict }),
            let row = try resource(uri, owner: owner)
        else { return false }
        let body: [UInt8]?
        switch resolution {
        case .takeTheirs: return try discardEdits(of: uri, owner: owner)
        case .keepMine: body = LocalVersion.of(row.body, edits: present.map { ($0.kind, $0.body) })
        case .merged(let merged): body = merged
        }
        var policy = row.policy
        policy.conflictResolutionPolicy = conflict.conflictPolicy
        let draft = EditDraft(
            id: id, uri: uri, kind: .update, body: body ?? [],
            contentType: conflict.kind == .patch ? "application/json" : conflict.contentType, policy: policy,
            isOffline: true)
        // Made on the version that was shown: a newer one is another conflict. Without one there is nothing to match.
        _ = try replaceEdits(
            of: uri, with: body, draft: draft, base: row.etag, isUnconditional: row.body == nil, owner: owner)
        return true
    }
}
