/// Where a resource is, relative to the backend's base URL: a path with its leading slash, which callers may leave out,
/// and perhaps a query.
struct ResourceURI: Sendable, Hashable, CustomStringConvertible {
    /// Marks resources that only exist here so far.
    private static let localMark = "/~mss-"
    /// Longer ones no server need take.
    static let longestUnits = 2_000

    /// Without a slash at the end, but for the root.
    let path: String
    /// Without the question mark.
    let query: String?

    var description: String { query.map { "\(path)?\($0)" } ?? path }

    /// - Throws: `ResourceError.invalidArgument` for a URL of another host, `..`, an empty part, or characters that
    ///   have to be percent-encoded.
    init(_ text: String) throws(ResourceError) {
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@%/?".utf8)
        guard text.utf8.count <= Self.longestUnits, text.utf8.allSatisfy(allowed.contains) else {
            throw ResourceError(
                .invalidArgument,
                "\(text.prefix(200)) is no resource's URI: it has over \(Self.longestUnits) characters, or such as have "
                    + "to be percent-encoded")
        }
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var path = String(parts[0])
        if !path.hasPrefix("/") { path = "/" + path }
        if path.hasSuffix("/"), path != "/" { path.removeLast() }
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        guard path == "/" || segments.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." }),
            !(segments.first?.hasSuffix(":") ?? false)
        else {
            throw ResourceError(
                .invalidArgument, "\(text) is no resource's URI: it is relative to the base URL, without // and ..")
        }
        self.path = path
        query = parts.count > 1 && !parts[1].isEmpty ? String(parts[1]) : nil
    }

    private init(path: String, query: String?) {
        self.path = path
        self.query = query
    }

    /// A collection with the query parameters `limit`, `offset` and `orderBy=a,b:desc`, always in this order.
    ///
    /// - Throws: `ResourceError.invalidArgument` for numbers below zero, and names with other characters than letters,
    ///   digits, `_`, `-` and `.`.
    func listed(limit: Int?, offset: Int?, orderBy: [SortKey]) throws(ResourceError) -> ResourceURI {
        guard limit ?? 0 >= 0, offset ?? 0 >= 0 else {
            throw ResourceError(.invalidArgument, "limit and offset take 0 or more")
        }
        let names = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.".utf8)
        guard orderBy.allSatisfy({ !$0.property.isEmpty && $0.property.utf8.allSatisfy(names.contains) }) else {
            throw ResourceError(.invalidArgument, "orderBy takes names of letters, digits, _, - and .")
        }
        var parameters = query.map { [$0] } ?? []
        if let limit { parameters.append("limit=\(limit)") }
        if let offset { parameters.append("offset=\(offset)") }
        if !orderBy.isEmpty { parameters.append("orderBy=" + orderBy.map(\.text).joined(separator: ",")) }
        return ResourceURI(path: path, query: parameters.isEmpty ? nil : parameters.joined(separator: "&"))
    }

    /// A place below this collection for what has no URI of the service's yet.
    func local(_ id: String) -> ResourceURI { ResourceURI(path: path + Self.localMark + id, query: nil) }

    /// Whether it is a place that this library made.
    var isLocal: Bool { path.contains(Self.localMark) }

    /// The item of this collection with this key, which is percent-encoded here.
    func item(_ key: String) -> ResourceURI {
        let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)
        let digits = Array("0123456789ABCDEF")
        let encoded = key.utf8.map { byte in
            plain.contains(byte)
                ? String(UnicodeScalar(byte)) : "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
        }.joined()
        return ResourceURI(path: path == "/" ? "/" + encoded : "\(path)/\(encoded)", query: nil)
    }

    /// Whether it is inside the other one, at any depth.
    func isBelow(_ other: ResourceURI) -> Bool {
        path != other.path && path.hasPrefix(other.path == "/" ? "/" : other.path + "/")
    }

    /// Its path, and then those that it is below, the longest first; without the root.
    var lineage: [ResourceURI] {
        let lowest = ResourceURI(path: path, query: nil)
        return Array(
            sequence(first: lowest) { lower in
                let parent = lower.parentPath
                return parent == "/" ? nil : ResourceURI(path: parent, query: nil)
            })
    }

    /// The path of the collection that it is in.
    var parentPath: String {
        let parent = path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
        return parent.isEmpty ? "/" : String(parent)
    }
}
