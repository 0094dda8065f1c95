/// The policies of an app: by resource path, and a default for its backend.
///
/// Each policy is decided separately: response header > request > resource path (exact > `/*` > `/**`; of equal reach
/// the longest base) > backend default > library default (RES6).
public struct PolicyBook: Sendable, Hashable {
    /// The policies by resource path.
    public var paths: [PathPattern: SyncPolicy]
    /// The default for all resources of the backend.
    public var backendDefault: SyncPolicy

    /// Makes a set of policies; by default only the library's defaults apply.
    public init(paths: [PathPattern: SyncPolicy] = [:], backendDefault: SyncPolicy = SyncPolicy()) {
        self.paths = paths
        self.backendDefault = backendDefault
    }

    /// The policies that apply to one resource.
    ///
    /// - Parameters:
    ///   - path: starts with a slash and has no query.
    ///   - request: the policies of the call.
    ///   - response: the policies of the response's headers; empty before there is a response.
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
