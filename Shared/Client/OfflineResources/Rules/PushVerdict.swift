import Foundation

/// The effect of a push on a local copy.
enum PushVerdict: Sendable, Hashable {
    /// The copy already has this version.
    case known
    case marked
    /// The copy is marked and fetched in the order of priorities.
    case fetched
    /// The pushed body replaces the copy.
    case replaced
    case deleted

    /// - Parameters:
    ///   - copyTag: the entity tag of the copy.
    ///   - asOf: the backend's time at which the copy was current.
    ///   - pushedAt: the time of the push. A copy that is newer than the push can also be newer than the pushed body,
    ///     so it is fetched instead. A copy whose version would then be unknown is also fetched.
    init(_ change: ResourcePush.Change, copyTag: String?, asOf: Date, pushedAt: Date) {
        switch change.action {
        case .delete: self = .deleted
        case _ where change.etag != nil && change.etag == copyTag: self = .known
        case .invalidate: self = .marked
        case .refresh:
            let isWhole = change.body != nil && (change.etag != nil || copyTag == nil)
            self = isWhole && pushedAt >= asOf ? .replaced : .fetched
        }
    }
}
