/// The policies that an app configures: by resource path, and a default for its backend.
///
/// Precedence, for each policy by itself: response header > request > resource path (exact > `/*` > `/**`, of these the
/// longest base first) > backend default > library default (spec, two-way §1).
public struct PolicyBook: Sendable, Hashable {
    /// By resource path; of two equal ones the later counts.
    public var paths: [PathPattern: SyncPolicy]
    /// For every resource of the backend.
    public var backendDefault: SyncPolicy

    /// Without anything, the library's defaults hold.
    public init(paths: [PathPattern: SyncPolicy] = [:], backendDefault: SyncPolicy = SyncPolicy()) {
        self.paths = paths
        self.backendDefault = backendDefault
    }

    /// The policies of one resource.
    ///
    /// - Parameters:
    ///   - path: with its leading slash, without a query.
    ///   - request: as the caller gives them.
    ///   - response: as the response's headers give them; nothing before there is a response.
    func policy(
        of path: String, kind: ResourceKind, request: SyncPolicy = SyncPolicy(), response: SyncPolicy = SyncPolicy()
    ) -> EffectivePolicy {
        let matching = paths.filter { $0.key.matches(path) }.sorted { left, right in
            left.key.reach == right.key.reach
                ? left.key.base.count > right.key.base.count : left.key.reach.rawValue < right.key.reach.rawValue
        }
        return EffectivePolicy.libraryDefault(of: kind)
            .overridden(by: [response, request] + matching.map(\.value) + [backendDefault])
    }
}
