import Foundation
import GRDB

/// What the service's answers make of edits.
extension StoreTransaction {
    /// Notes that edits are about to be sent: from now on the service may have them.
    func markSent(_ edits: [StoredEdit]) throws {
        for edit in edits where edit.state == .queued {
            try db.execute(
                sql: "UPDATE edit SET state = ? WHERE seq = ?", arguments: [EditState.sent.rawValue, edit.seq])
        }
    }

    /// They did not leave the device.
    func markUnsent(_ edits: [StoredEdit]) throws {
        for edit in edits where edit.state == .queued {
            try db.execute(
                sql: "UPDATE edit SET state = ? WHERE seq = ? AND state = ?",
                arguments: [EditState.queued.rawValue, edit.seq, EditState.sent.rawValue])
        }
    }

    /// The service has taken an edit; those of the same resource that follow are made on its new version.
    ///
    /// - Parameters:
    ///   - answer: what it said of the new version.
    ///   - place: where the service has put it; nil: it did not say, or it is where it was.
    func applied(
        _ edit: StoredEdit, answer: EditAnswer, place: ResourceURI?, owner: String, now: Date
    ) throws {
        let row = try resource(edit.uri, owner: owner)
        try finish(edit, owner: owner)
        if edit.kind == .delete {
            try remove(edit.uri, owner: owner)
            return
        }
        guard edit.kind != .create || place != nil else {
            // Without its place nothing can be done with it; its collection shows it when it is fetched.
            try mark(ResourceURI(edit.uri.parentPath), refresh: true, owner: owner)
            if try edits(of: edit.uri, owner: owner).isEmpty { try removeIfNothing(edit.uri, owner: owner) }
            return
        }
        let uri = place ?? edit.uri
        let isMoved = uri != edit.uri
        if isMoved { try move(edit.uri, to: uri, owner: owner) }
        let local = LocalVersion.of(row?.body, edits: [(edit.kind, edit.body)])
        guard let row, let body = answer.body ?? local, !row.policy.noCache else {
            try evict(uri, owner: owner)
            return
        }
        let version = ServiceVersion(
            uri: uri, kind: row.kind, body: body,
            contentType: edit.kind == .patch ? row.contentType : edit.contentType, etag: answer.etag,
            asOf: answer.asOf, policy: row.policy,
            // What a patch became, or a version without a tag, only the service knows.
            isInvalid: answer.body == nil && (edit.kind == .patch || answer.etag == nil))
        if try store(version, owner: owner, since: nil, now: now) != .notStored, isMoved {
            try append(uri, owner: owner)
        }
        try removeIfNothing(uri, owner: owner)
        try db.execute(
            sql: "UPDATE edit SET base_etag = ? WHERE owner = ? AND uri = ? AND state IN (0, 1)",
            arguments: [answer.etag, owner, uri.description])
    }

    /// The edit loses to the service's version.
    func drop(_ edit: StoredEdit, owner: String) throws {
        try finish(edit, owner: owner)
        try removeIfNothing(edit.uri, owner: owner)
    }

    /// Somebody has to look at the edit; those of the same resource wait behind it.
    func stop(_ edit: StoredEdit, as state: EditState, status: Int, message: String?, owner: String) throws {
        try settle(edit.seq, as: state, status: status, message: message)
        if edit.isOffline { try note(edit.uri, owner: owner) }
    }

    func settle(_ seq: Int64, as state: EditState, status: Int?, message: String?) throws {
        try db.execute(
            sql: "UPDATE edit SET state = ?, status = ?, message = ? WHERE seq = ?",
            arguments: [state.rawValue, status, message, seq])
    }

    /// Has an edit sent without a condition, as a request of its own.
    func makeUnconditional(_ edit: StoredEdit, id: String) throws -> StoredEdit? {
        try db.execute(
            sql: "UPDATE edit SET is_unconditional = 1, edit_id = ? WHERE seq = ?", arguments: [id, edit.seq])
        return try self.edit(edit.seq)
    }

    /// Its caller does not wait any more: the app is told of its end.
    func makeOffline(_ seq: Int64) throws {
        try db.execute(sql: "UPDATE edit SET is_offline = 1 WHERE seq = ?", arguments: [seq])
    }

    /// Takes one edit back whose caller is told that it failed.
    func takeBack(_ edit: StoredEdit, owner: String) throws {
        try db.execute(sql: "DELETE FROM edit WHERE seq = ?", arguments: [edit.seq])
        if edit.state == .sent { try mark(edit.uri, refresh: true, owner: owner) }
        try removeIfNothing(edit.uri, owner: owner)
    }

    private func finish(_ edit: StoredEdit, owner: String) throws {
        // Whether its caller waits may have changed since it was read.
        let isOffline = try Bool.fetchOne(db, sql: "SELECT is_offline FROM edit WHERE seq = ?", arguments: [edit.seq])
        try db.execute(sql: "DELETE FROM edit WHERE seq = ?", arguments: [edit.seq])
        if isOffline == true { try note(edit.uri, owner: owner) }
    }

    /// What was created or put is at another place of the service's from now on, and so is what was made here below it;
    /// what the service has itself below it stays.
    private func move(_ former: ResourceURI, to uri: ResourceURI, owner: String) throws {
        let below = try String.fetchAll(
            db,
            sql: """
                SELECT uri FROM resource WHERE owner = ?1 AND substr(uri, 1, length(?2) + 1) = ?2 || '/'
                    AND body IS NULL AND kind <> 'collection'
                """, arguments: [owner, former.path])
        for text in [former.path] + below {
            let moved = try ResourceURI(uri.path + text.dropFirst(former.path.count))
            // The service's version may have come before its answer did.
            try db.execute(
                sql: "DELETE FROM resource WHERE owner = ? AND uri = ?", arguments: [owner, moved.path])
            try db.execute(
                sql: "UPDATE resource SET uri = ?1, path = ?1, parent = ?2 WHERE owner = ?3 AND uri = ?4",
                arguments: [moved.path, moved.parentPath, owner, text])
            // Names that it had before lead to the new place, too.
            for table in ["edit", "notice", "alias"] {
                try db.execute(
                    sql: "UPDATE \(table) SET uri = ? WHERE owner = ? AND uri = ?",
                    arguments: [moved.path, owner, text])
            }
            try db.execute(
                sql: "INSERT OR REPLACE INTO alias VALUES (?, ?, ?)", arguments: [owner, text, moved.path])
            try leaveCollections(ResourceURI(text), owner: owner)
        }
    }

    // MARK: Notices

    private func note(_ uri: ResourceURI, owner: String) throws {
        try db.execute(
            sql: "INSERT INTO notice (owner, uri) VALUES (?, ?)", arguments: [owner, uri.description])
    }

    /// Edits that were answered and of which the app has not been told, in order.
    func notices(owner: String) throws -> [(seq: Int64, uri: ResourceURI)] {
        try Row.fetchAll(db, sql: "SELECT seq, uri FROM notice WHERE owner = ? ORDER BY seq", arguments: [owner])
            .map { row in (row[0], try ResourceURI(row[1])) }
    }

    /// The app has been told.
    func forgetNotice(_ seq: Int64) throws {
        try db.execute(sql: "DELETE FROM notice WHERE seq = ?", arguments: [seq])
    }
}
