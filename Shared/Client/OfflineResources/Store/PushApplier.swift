import Foundation
import GRDB

/// Applies pushes to the copies.
struct PushApplier {
    let context: StoreContext
    let resources: ResourceTable
    let versions: VersionWriter
    let refreshes: RefreshQueue

    /// Applies one change of a push.
    ///
    /// - Parameters:
    ///   - owner: the user of the push; nil: the copies of all users. A body that was pushed to all users replaces only
    ///     the copies of the present user, and only those are fetched.
    ///   - present: the bound user.
    ///   - pushedAt: the time of the push, by the push service's clock.
    /// - Returns: the copies of the present user that were changed or deleted.
    func apply(
        _ change: ResourcePush.Change, owner: String?, present: String, pushedAt: Date, now: Date
    ) throws -> [ResourceURI] {
        let rows = try Row.fetchAll(
            context.db,
            sql: """
                SELECT owner, uri FROM resource
                WHERE (owner = ?1 OR ?1 IS NULL) AND (uri = ?2 OR (path = ?2 AND kind = 'collection'))
                """, arguments: [owner, change.uri.description])
        var changed: [ResourceURI] = []
        for row in rows {
            let (whose, uri): (String, ResourceURI) = (row[0], try ResourceURI(row[1]))
            guard let copy = try resources.row(uri, owner: whose) else { continue }
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
            try refreshes.mark(copy.uri, refresh: false, owner: owner)
            return false
        case .deleted: return try versions.remove(copy.uri, owner: owner)
        case .replaced where mayReplace && copy.kind == .item:
            let version = ServiceVersion(
                uri: copy.uri, kind: .item, body: change.body ?? [], contentType: copy.contentType, etag: change.etag,
                asOf: pushedAt, policy: copy.policy)
            return try versions.store(version, owner: owner, since: nil, now: now) == .changed
        case .replaced, .fetched:
            // Another user's copy is fetched when that user is bound again.
            try refreshes.mark(copy.uri, refresh: true, owner: owner)
            return false
        }
    }
}
