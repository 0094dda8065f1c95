import Foundation
import GRDB

/// Applies the backend's responses to edits.
struct ResponseApplier {
    let context: StoreContext
    let aliases: AliasTable
    let resources: ResourceTable
    let members: CollectionMembers
    let edits: EditQueue
    let versions: VersionWriter
    let refreshes: RefreshQueue
    let notices: NoticeQueue

    /// Applies a successful response. The edits of the same resource that follow are based on its new version.
    ///
    /// - Parameters:
    ///   - answer: the response's tag and body.
    ///   - place: the new URI; nil when the resource keeps its URI or the response does not name one.
    /// - Returns: the URI of a cached resource that the edit changed or deleted; nil when the resource is newly cached.
    func apply(
        _ edit: StoredEdit, answer: EditAnswer, place: ResourceURI?, owner: String, now: Date
    ) throws -> ResourceURI? {
        let row = try resources.row(edit.uri, owner: owner)
        try finish(edit, owner: owner)
        if edit.kind == .delete { return try versions.remove(edit.uri, owner: owner) ? edit.uri : nil }
        guard edit.kind != .create || place != nil else {
            // Without a URI the resource cannot be used; the next fetch of its collection shows it.
            try refreshes.mark(ResourceURI(edit.uri.parentPath), refresh: true, owner: owner)
            if try edits.all(of: edit.uri, owner: owner).isEmpty {
                try resources.removeIfNothing(edit.uri, owner: owner)
            }
            return nil
        }
        let uri = place ?? edit.uri
        let isMoved = uri != edit.uri
        if isMoved { try move(edit.uri, to: uri, owner: owner) }
        let local = LocalVersion.of(row?.body, edits: [(edit.kind, edit.body)])
        guard let row, let body = answer.body ?? local, !row.policy.noCache else {
            try resources.evict(uri, owner: owner)
            return nil
        }
        let version = ServiceVersion(
            uri: uri, kind: row.kind, body: body,
            contentType: edit.kind == .patch ? row.contentType : edit.contentType, etag: answer.etag,
            asOf: answer.asOf, policy: row.policy,
            // Only the backend knows the result of a patch, and of a version without a tag.
            isInvalid: answer.body == nil && (edit.kind == .patch || answer.etag == nil))
        let isStored = try versions.store(version, owner: owner, since: nil, now: now) != .notStored
        if isStored, isMoved { try members.append(uri, owner: owner) }
        try resources.removeIfNothing(uri, owner: owner)
        try edits.rebase(uri, on: answer.etag, owner: owner)
        return isStored && row.body != nil ? uri : nil
    }

    /// Drops an edit that lost to the backend's version.
    func drop(_ edit: StoredEdit, owner: String) throws {
        try finish(edit, owner: owner)
        try resources.removeIfNothing(edit.uri, owner: owner)
    }

    /// Stops an edit until the app decides; later edits of the resource wait for it.
    func stop(_ edit: StoredEdit, as state: EditState, status: Int, message: String?, owner: String) throws {
        try edits.setState(of: edit.seq, to: state, status: status, message: message)
        if edit.isOffline { try notices.add(edit.uri, owner: owner) }
    }

    /// Deletes an edit whose caller receives an error.
    func withdraw(_ edit: StoredEdit, owner: String) throws {
        try edits.delete(edit.seq)
        if edit.state == .sent { try refreshes.mark(edit.uri, refresh: true, owner: owner) }
        try resources.removeIfNothing(edit.uri, owner: owner)
    }

    private func finish(_ edit: StoredEdit, owner: String) throws {
        if try edits.delete(edit.seq) { try notices.add(edit.uri, owner: owner) }
    }

    /// Moves a resource to the URI that the backend has named, together with local resources below it. The backend's
    /// own resources below the former URI stay.
    private func move(_ former: ResourceURI, to uri: ResourceURI, owner: String) throws {
        let below = try String.fetchAll(
            context.db,
            sql: """
                SELECT uri FROM resource WHERE owner = ?1 AND substr(uri, 1, length(?2) + 1) = ?2 || '/'
                    AND body IS NULL AND kind <> 'collection'
                """, arguments: [owner, former.path])
        for text in [former.path] + below {
            let moved = try ResourceURI(uri.path + text.dropFirst(former.path.count))
            // The backend's version may have arrived before its response to the edit.
            try context.db.execute(
                sql: "DELETE FROM resource WHERE owner = ? AND uri = ?", arguments: [owner, moved.path])
            try context.db.execute(
                sql: "UPDATE resource SET uri = ?1, path = ?1, parent = ?2 WHERE owner = ?3 AND uri = ?4",
                arguments: [moved.path, moved.parentPath, owner, text])
            // Earlier URIs of the resource also lead to the new one.
            for table in ["edit", "notice", "alias"] {
                try context.db.execute(
                    sql: "UPDATE \(table) SET uri = ? WHERE owner = ? AND uri = ?",
                    arguments: [moved.path, owner, text])
            }
            try aliases.add(text, leadsTo: moved.path, owner: owner)
            try members.removeFromCollections(ResourceURI(text), owner: owner)
        }
    }
}
