import Foundation
import GRDB

/// The edits that the backend has not applied, in the order in which they were made.
struct EditQueue {
    let context: StoreContext
    let resources: ResourceTable
    let refreshes: RefreshQueue

    private static let columns = """
        seq, edit_id, uri, kind, body, content_type, headers, base_etag, conflict_policy, is_unconditional, state,
        is_offline, status, message
        """

    private func edit(_ row: Row) throws -> StoredEdit {
        let seq: Int64 = row["seq"]
        return StoredEdit(
            seq: seq, id: row["edit_id"], uri: try ResourceURI(row["uri"]),
            kind: EditKind(rawValue: row["kind"]) ?? .update, body: try context.opened(row["body"], "edit/\(seq)"),
            contentType: row["content_type"], headers: try headers(row["headers"], of: seq), baseTag: row["base_etag"],
            conflictPolicy: ConflictResolutionPolicy(rawValue: row["conflict_policy"]) ?? .preserveConflict,
            isUnconditional: row["is_unconditional"], state: EditState(rawValue: row["state"]) ?? .sent,
            isOffline: row["is_offline"], status: row["status"], message: row["message"])
    }

    private func headers(_ stored: Data?, of seq: Int64) throws -> ResourceHeaders {
        guard let stored else { return ResourceHeaders() }
        return try JSONDecoder().decode(
            ResourceHeaders.self, from: Data(context.opened(stored, "edit/\(seq)/headers")))
    }

    private func stored(_ headers: ResourceHeaders, of seq: Int64) throws -> Data? {
        guard !headers.fields.isEmpty else { return nil }
        return try context.sealed([UInt8](JSONEncoder().encode(headers)), "edit/\(seq)/headers")
    }

    // MARK: Finding

    /// The edits of a resource in the order in which they were made.
    func all(of uri: ResourceURI, owner: String) throws -> [StoredEdit] {
        try Row.fetchAll(
            context.db.cachedStatement(
                sql: "SELECT \(Self.columns) FROM edit WHERE owner = ? AND uri = ? ORDER BY seq"),
            arguments: [owner, uri.description]
        ).map(edit)
    }

    /// The edit with a number; nil when it is no longer stored.
    func edit(_ seq: Int64) throws -> StoredEdit? {
        try Row.fetchOne(context.db, sql: "SELECT \(Self.columns) FROM edit WHERE seq = ?", arguments: [seq]).map(edit)
    }

    /// The resources of a user that have edits, in the order of their first edit.
    func editedResources(owner: String) throws -> [ResourceURI] {
        try String.fetchAll(
            context.db, sql: "SELECT uri FROM edit WHERE owner = ? GROUP BY uri ORDER BY min(seq)", arguments: [owner]
        ).map { text in try ResourceURI(text) }
    }

    /// The edits that can be sent now: by the pins of their resources, then in the order in which they were made. An
    /// edit waits behind a refused or conflicting edit of the same resource, and while its URI is below one that the
    /// backend has not named yet. A resource has one pin, so its own edits stay in order.
    ///
    /// - Parameters:
    ///   - tried: the ids of edits to leave out.
    ///   - limit: the largest number of edits.
    func sendable(except tried: Set<String> = [], limit: Int, owner: String) throws -> [StoredEdit] {
        let rows = try Row.fetchCursor(
            context.db,
            sql: """
                SELECT edit.seq, edit.edit_id, edit.uri, edit.kind FROM edit
                LEFT JOIN resource ON resource.owner = edit.owner AND resource.uri = edit.uri
                WHERE edit.owner = ?1 AND edit.state IN (0, 1)
                    AND NOT EXISTS (SELECT 1 FROM edit AS earlier WHERE earlier.owner = ?1 AND earlier.uri = edit.uri
                        AND earlier.seq < edit.seq AND earlier.state IN (2, 3))
                ORDER BY \(StoreSchema.pinRank), edit.seq
                """, arguments: [owner])
        var found: [StoredEdit] = []
        while found.count < limit, let row = try rows.next() {
            if tried.contains(row["edit_id"]) { continue }
            let uri = try ResourceURI(row["uri"])
            let isCreate = row["kind"] == EditKind.create.rawValue
            let target = isCreate ? try ResourceURI(uri.parentPath) : uri
            if target.isLocal { continue }
            if let edit = try edit(row["seq"] as Int64) { found.append(edit) }
        }
        return found
    }

    /// Whether there are edits that can be sent now.
    func hasWaitingEdits(owner: String) throws -> Bool {
        try !sendable(limit: 1, owner: owner).isEmpty
    }

    // MARK: Adding

    /// Adds an edit, or merges it with a stored one where that is safe (`EditMerge`).
    ///
    /// - Parameter mayMerge: false when the edit must stay separate, so that it can be withdrawn alone.
    /// - Returns: the stored edit; nil when it cancelled an edit that was never sent.
    /// - Throws: `ResourceError.storeFull`; nothing is changed then.
    func add(_ draft: EditDraft, owner: String, mayMerge: Bool) throws -> StoredEdit? {
        guard try context.hasSpace(for: draft.body.count + 1_000) else {
            throw ResourceError(
                .storeFull, "the edit of \(draft.uri) does not fit in maxStoreSize; evict copies that are not needed")
        }
        let present = try all(of: draft.uri, owner: owner)
        let row = try resources.row(draft.uri, owner: owner)
        if row == nil { _ = try resources.insert(draft.uri, kind: draft.resourceKind, owner: owner) }
        try context.db.execute(
            sql: "UPDATE resource SET policy = ? WHERE owner = ? AND uri = ?",
            arguments: [try StoreContext.data(draft.policy), owner, draft.uri.description])
        if present.contains(where: { !$0.state.isWaiting }) {
            return try collapse(draft.uri, adding: draft, owner: owner)
        }
        if mayMerge, let last = present.last, last.state == .queued, try isNewest(last, owner: owner),
            last.conflictPolicy == draft.policy.conflictResolutionPolicy, last.headers == draft.headers
        {
            switch EditMerge((last.kind, last.body), (draft.kind, draft.body)) {
            case .one(let kind, let body):
                try context.db.execute(
                    sql: "UPDATE edit SET kind = ?, body = ?, content_type = ?, is_offline = ? WHERE seq = ?",
                    arguments: [
                        kind.rawValue, try context.sealed(body, "edit/\(last.seq)"),
                        draft.kind == .patch ? last.contentType : draft.contentType,
                        last.isOffline || draft.isOffline, last.seq,
                    ])
                return try edit(last.seq)
            case .none:
                try context.db.execute(sql: "DELETE FROM edit WHERE seq = ?", arguments: [last.seq])
                try resources.removeIfNothing(draft.uri, owner: owner)
                return nil
            case .two: break
            }
        }
        // The edit is based on the same version as the edits before it.
        let base = present.last.map(\.baseTag) ?? row?.etag
        return try insert(draft, base: base, isUnconditional: false, owner: owner)
    }

    private func isNewest(_ edit: StoredEdit, owner: String) throws -> Bool {
        try Int64.fetchOne(context.db, sql: "SELECT max(seq) FROM edit WHERE owner = ?", arguments: [owner]) == edit.seq
    }

    private func insert(
        _ draft: EditDraft, base: String?, isUnconditional: Bool, owner: String
    ) throws -> StoredEdit? {
        try context.db.execute(
            sql: """
                INSERT INTO edit (owner, edit_id, uri, kind, body, content_type, base_etag, conflict_policy,
                    is_unconditional, is_offline) VALUES (?, ?, ?, ?, x'', ?, ?, ?, ?, ?)
                """,
            arguments: [
                owner, draft.id, draft.uri.description, draft.kind.rawValue, draft.contentType, base,
                draft.policy.conflictResolutionPolicy.rawValue, isUnconditional, draft.isOffline,
            ])
        let seq = context.db.lastInsertedRowID
        try context.db.execute(
            sql: "UPDATE edit SET body = ?, headers = ? WHERE seq = ?",
            arguments: [try context.sealed(draft.body, "edit/\(seq)"), try stored(draft.headers, of: seq), seq])
        return try edit(seq)
    }

    /// Merges all edits of a resource after the backend has refused one of them: neither that edit nor any behind it
    /// was applied.
    ///
    /// A conflict stays until it is resolved. A refused edit becomes queued again.
    private func collapse(_ uri: ResourceURI, adding draft: EditDraft, owner: String) throws -> StoredEdit? {
        let present = try all(of: uri, owner: owner)
        let isConflict = present.contains { $0.state == .conflict }
        let edit = try replaceEdits(
            of: uri,
            with: LocalVersion.of(
                resources.row(uri, owner: owner)?.body,
                edits: present.map { ($0.kind, $0.body) } + [(draft.kind, draft.body)]),
            draft: draft, base: present.first?.baseTag, isUnconditional: present.first?.isUnconditional ?? false,
            owner: owner)
        if isConflict, let edit { try setState(of: edit.seq, to: .conflict, status: nil, message: nil) }
        return try edit.flatMap { try self.edit($0.seq) }
    }

    /// Replaces all edits of a resource by one.
    ///
    /// - Parameters:
    ///   - body: the new version of the resource; nil: deleted.
    ///   - draft: has the id, the policy and the content type.
    private func replaceEdits(
        of uri: ResourceURI, with body: [UInt8]?, draft: EditDraft, base: String?, isUnconditional: Bool,
        owner: String
    ) throws -> StoredEdit? {
        let present = try all(of: uri, owner: owner)
        try context.db.execute(
            sql: "DELETE FROM edit WHERE owner = ? AND uri = ?", arguments: [owner, uri.description])
        let isNew = present.first?.kind == .create || uri.isLocal
        guard let body else {
            if isNew || isUnconditional {
                try resources.removeIfNothing(uri, owner: owner)
                return nil
            }
            let deletion = EditDraft(
                id: draft.id, uri: uri, kind: .delete, body: [], contentType: draft.contentType,
                headers: draft.headers, policy: draft.policy, isOffline: draft.isOffline)
            return try insert(deletion, base: base, isUnconditional: false, owner: owner)
        }
        let contentType = draft.kind == .patch ? "application/json" : draft.contentType
        let whole = EditDraft(
            id: draft.id, uri: uri, kind: isNew ? .create : .update, body: body, contentType: contentType,
            headers: draft.headers, policy: draft.policy, isOffline: draft.isOffline)
        return try insert(whole, base: base, isUnconditional: isUnconditional, owner: owner)
    }

    // MARK: Discarding

    /// Discards all edits of a resource; the backend's version stays. Resources that were created below a temporary URI
    /// are discarded with it.
    ///
    /// - Returns: whether there were edits.
    func discardEdits(of uri: ResourceURI, owner: String) throws -> Bool {
        var (found, uris) = (false, [uri])
        if uri.isLocal {
            uris += try editedResources(owner: owner).filter { $0.path.hasPrefix(uri.path + "/") }
        }
        for uri in uris {
            let present = try all(of: uri, owner: owner)
            guard !present.isEmpty else { continue }
            found = true
            try context.db.execute(
                sql: "DELETE FROM edit WHERE owner = ? AND uri = ?", arguments: [owner, uri.description])
            // The backend may have applied it.
            if present.contains(where: { $0.state == .sent }) { try refreshes.mark(uri, refresh: true, owner: owner) }
            try resources.removeIfNothing(uri, owner: owner)
        }
        return found
    }

    /// Queues refused edits again.
    ///
    /// - Parameter makeID: makes a new `Idempotency-Key`, because the former one has been answered.
    func retryRefused(_ uri: ResourceURI, owner: String, makeID: () -> String) throws -> Bool {
        let refused = try all(of: uri, owner: owner).filter { $0.state == .refused }
        for edit in refused {
            try context.db.execute(
                sql: "UPDATE edit SET state = 0, status = NULL, message = NULL, edit_id = ? WHERE seq = ?",
                arguments: [makeID(), edit.seq])
        }
        return !refused.isEmpty
    }

    /// Ends a conflict.
    ///
    /// - Parameters:
    ///   - resolution: the decision of the app.
    ///   - id: the id of the new edit.
    /// - Returns: false when the resource has no conflict.
    func resolve(_ uri: ResourceURI, with resolution: ConflictResolution, id: String, owner: String) throws -> Bool {
        let present = try all(of: uri, owner: owner)
        guard let conflict = present.first(where: { $0.state == .conflict }),
            let row = try resources.row(uri, owner: owner)
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
            contentType: conflict.kind == .patch ? "application/json" : conflict.contentType,
            headers: conflict.headers, policy: policy, isOffline: true)
        // The edit is based on the version that the app saw, so a newer version is a new conflict. Without a version
        // there is nothing to match.
        _ = try replaceEdits(
            of: uri, with: body, draft: draft, base: row.etag, isUnconditional: row.body == nil, owner: owner)
        return true
    }

    // MARK: States

    /// Marks edits as sent, before they are sent: from now on the backend may have them.
    func markSent(_ edits: [StoredEdit]) throws {
        for edit in edits where edit.state == .queued {
            try context.db.execute(
                sql: "UPDATE edit SET state = ? WHERE seq = ?", arguments: [EditState.sent.rawValue, edit.seq])
        }
    }

    /// Marks edits as queued again: they did not leave the device.
    func markUnsent(_ edits: [StoredEdit]) throws {
        for edit in edits where edit.state == .queued {
            try context.db.execute(
                sql: "UPDATE edit SET state = ? WHERE seq = ? AND state = ?",
                arguments: [EditState.queued.rawValue, edit.seq, EditState.sent.rawValue])
        }
    }

    /// Sets the state of an edit, and the backend's refusal.
    func setState(of seq: Int64, to state: EditState, status: Int?, message: String?) throws {
        try context.db.execute(
            sql: "UPDATE edit SET state = ?, status = ?, message = ? WHERE seq = ?",
            arguments: [state.rawValue, status, message, seq])
    }

    /// Makes an edit unconditional, with a new id, because it is a new request.
    func makeUnconditional(_ edit: StoredEdit, id: String) throws -> StoredEdit? {
        try context.db.execute(
            sql: "UPDATE edit SET is_unconditional = 1, edit_id = ? WHERE seq = ?", arguments: [id, edit.seq])
        return try self.edit(edit.seq)
    }

    /// The caller does not wait any more, so the app is notified of the result.
    func makeOffline(_ seq: Int64) throws {
        try context.db.execute(sql: "UPDATE edit SET is_offline = 1 WHERE seq = ?", arguments: [seq])
    }

    /// Deletes an edit.
    ///
    /// - Returns: whether it was made offline. It may have become an offline edit since it was read.
    @discardableResult
    func delete(_ seq: Int64) throws -> Bool {
        let isOffline = try Bool.fetchOne(
            context.db, sql: "SELECT is_offline FROM edit WHERE seq = ?", arguments: [seq])
        try context.db.execute(sql: "DELETE FROM edit WHERE seq = ?", arguments: [seq])
        return isOffline == true
    }

    /// Bases the edits of a resource that wait or are sent on a version.
    func rebase(_ uri: ResourceURI, on etag: String?, owner: String) throws {
        try context.db.execute(
            sql: "UPDATE edit SET base_etag = ? WHERE owner = ? AND uri = ? AND state IN (0, 1)",
            arguments: [etag, owner, uri.description])
    }
}
