import NIOHTTP1

extension HTTPRequestHead {
    /// Path and query: what is asked for, and what is signed. An absolute target (RFC 9112 §3.2.2) has scheme and host
    /// before them, which `HeadForm` has compared with the Host field.
    var target: String {
        guard !uri.utf8.starts(with: "/".utf8), let scheme = uri.firstRange(of: "://") else { return uri }
        let rest = uri[scheme.upperBound...].drop { $0 != "/" && $0 != "?" }
        return rest.first == "/" ? String(rest) : "/" + rest
    }

    /// The value of a field, all its lines as one (RFC 9110 §5.3); nil when there is none.
    func value(of name: String) -> String? {
        let lines = headers[name]
        return lines.count > 1 ? lines.joined(separator: ", ") : lines.first
    }
}
