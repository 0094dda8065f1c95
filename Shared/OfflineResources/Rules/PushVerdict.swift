import Foundation

/// What becomes of a local copy that a push names.
enum PushVerdict: Sendable, Hashable {
    /// It is this version already.
    case known
    case marked
    /// It is marked, and fetched by its urgency.
    case fetched
    /// The pushed body takes its place.
    case replaced
    case deleted

    /// - Parameters:
    ///   - copyTag: of the copy.
    ///   - asOf: the service's time at which the copy was the newest.
    ///   - pushedAt: the service's time of the push. A copy that is newer than the push may be newer than the body, too:
    ///     it is fetched instead, which is always right. So is one whose version would not be known afterwards.
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
