/// A resource path in a policy: exact, `/*` for one level, `/**` for the base and everything below. The leading slash
/// is optional (RES6).
public struct PathPattern: Sendable, Hashable {
    /// How much the pattern matches; the narrowest first.
    enum Reach: Int, Sendable, Hashable {
        case exact
        case oneLevel
        case below
    }

    let reach: Reach
    /// The path without the wildcard; empty for the root.
    let base: String

    /// Parses a pattern.
    ///
    /// - Throws: `ResourceError.invalidArgument` for a wildcard that is not at the end, and for an invalid path.
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
                .invalidArgument, "the path \(text) has a wildcard that is not at its end; end it with /* or /**"
            )
        }
        base = path.isEmpty ? "" : try ResourceURI(path).path
    }

    /// Whether the pattern matches a path, which starts with a slash and has no query.
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
