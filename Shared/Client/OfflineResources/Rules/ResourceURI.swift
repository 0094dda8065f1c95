/// The position of a resource relative to the base URL: a path with a leading slash, which callers can omit, and an
/// optional query.
struct ResourceURI: Sendable, Hashable, CustomStringConvertible {
    /// Marks the temporary URI of a resource that exists only on this device.
    private static let localMark = "/~mss-"
    /// The longest URI, in bytes; servers need not accept longer ones.
    static let longestUnits = 2_000

    /// The path without a slash at its end, except for the root.
    let path: String
    /// The query without the question mark.
    let query: String?

    var description: String { query.map { "\(path)?\($0)" } ?? path }

    /// - Throws: `ResourceError.invalidArgument` for a URL with a host, `..`, an empty segment, or characters that must
    ///   be percent-encoded.
    init(_ text: String) throws(ResourceError) {
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@%/?".utf8)
        guard text.utf8.count <= Self.longestUnits, text.utf8.allSatisfy(allowed.contains) else {
            throw ResourceError(
                .invalidArgument,
                "\(text.prefix(200)) is not a valid resource URI: it has more than \(Self.longestUnits) bytes, or "
                    + "characters that must be percent-encoded")
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
                .invalidArgument,
                "\(text) is not a valid resource URI: it must be relative to the base URL, without // and ..")
        }
        self.path = path
        query = parts.count > 1 && !parts[1].isEmpty ? String(parts[1]) : nil
    }

    private init(path: String, query: String?) {
        self.path = path
        self.query = query
    }

    /// Adds the query parameters `limit`, `offset` and `orderBy=a,b:desc`, always in this order.
    ///
    /// - Throws: `ResourceError.invalidArgument` for negative numbers, and for names with characters other than
    ///   letters, digits, `_`, `-` and `.`.
    func listed(limit: Int?, offset: Int?, orderBy: [SortKey]) throws(ResourceError) -> ResourceURI {
        guard limit ?? 0 >= 0, offset ?? 0 >= 0 else {
            throw ResourceError(.invalidArgument, "limit and offset must be 0 or more")
        }
        let names = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.".utf8)
        guard orderBy.allSatisfy({ !$0.property.isEmpty && $0.property.utf8.allSatisfy(names.contains) }) else {
            throw ResourceError(.invalidArgument, "a name in orderBy must have only letters, digits, _, - and .")
        }
        var parameters = query.map { [$0] } ?? []
        if let limit { parameters.append("limit=\(limit)") }
        if let offset { parameters.append("offset=\(offset)") }
        if !orderBy.isEmpty { parameters.append("orderBy=" + orderBy.map(\.text).joined(separator: ",")) }
        return ResourceURI(path: path, query: parameters.isEmpty ? nil : parameters.joined(separator: "&"))
    }

    /// A temporary URI below this collection, for a resource that the backend has not named yet.
    func local(_ id: String) -> ResourceURI { ResourceURI(path: path + Self.localMark + id, query: nil) }

    /// Whether this is a temporary URI of the library, or below one.
    var isLocal: Bool { path.contains(Self.localMark) }

    /// The URI of the item with this key. The key is percent-encoded.
    func item(_ key: String) -> ResourceURI {
        let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)
        let digits = Array("0123456789ABCDEF")
        let encoded = key.utf8.map { byte in
            plain.contains(byte)
                ? String(UnicodeScalar(byte)) : "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
        }.joined()
        return ResourceURI(path: path == "/" ? "/" + encoded : "\(path)/\(encoded)", query: nil)
    }

    /// Whether this path is below the other one, at any depth.
    func isBelow(_ other: ResourceURI) -> Bool {
        path != other.path && path.hasPrefix(other.path == "/" ? "/" : other.path + "/")
    }

    /// The path itself and all paths above it, the longest first, without the root.
    var lineage: [ResourceURI] {
        let lowest = ResourceURI(path: path, query: nil)
        return Array(
            sequence(first: lowest) { lower in
                let parent = lower.parentPath
                return parent == "/" ? nil : ResourceURI(path: parent, query: nil)
            })
    }

    /// The path of the collection that contains the resource.
    var parentPath: String {
        let parent = path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
        return parent.isEmpty ? "/" : String(parent)
    }
}
