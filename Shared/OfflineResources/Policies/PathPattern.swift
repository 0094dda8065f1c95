/// A resource path of a policy file: exact, `/*` for one level, `/**` for the base and everything below; the leading
/// slash is optional (spec, two-way §1).
public struct PathPattern: Sendable, Hashable {
    /// How far it reaches; the closer first.
    enum Reach: Int, Sendable, Hashable {
        case exact
        case oneLevel
        case below
    }

    let reach: Reach
    /// Without the wildcard; empty for the root.
    let base: String

    /// - Throws: `ResourceError.invalidArgument` for a wildcard elsewhere than at the end, or a path that cannot be.
    public init(_ text: String) throws(ResourceError) {
        var path = text.hasPrefix("/") ? text : "/" + text
        if path.hasSuffix("/**") {
            reach = .below
            path.removeLast(3)
        } else if path.hasSuffix("/*") {
            reach = .oneLevel
            path.removeLast(2)
        } else {
            reach = .exact
        }
        guard !path.contains("*") else {
            throw ResourceError(
                .invalidArgument, "in the path \(text) a wildcard stands elsewhere than at the end: use /* or /** there"
            )
        }
        base = path.isEmpty ? "" : try ResourceURI(path).path
    }

    /// Whether it is said for this path, which has its leading slash and no query.
    func matches(_ path: String) -> Bool {
        switch reach {
        case .exact: return path == base || (path == "/" && base.isEmpty)
        case .oneLevel:
            guard path.hasPrefix(base + "/") else { return false }
            let rest = path.dropFirst(base.count + 1)
            return !rest.isEmpty && !rest.contains("/")
        case .below: return path == base || path.hasPrefix(base + "/")
        }
    }
}
