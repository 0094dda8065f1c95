import Foundation

/// The backend's base URL.
struct BackendURL: Sendable, Hashable {
    let scheme: String
    let host: String
    /// The port; nil: the default of the scheme.
    let port: Int?
    /// The path without a slash at its end; empty for the root.
    let path: String

    /// - Throws: `ResourceError.invalidArgument` for a scheme other than `http` and `https`, credentials, a query or a
    ///   fragment.
    init(_ text: String) throws(ResourceError) {
        guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased(),
            ["http", "https"].contains(scheme), let host = parts.host, !host.isEmpty, parts.user == nil,
            parts.password == nil, parts.query == nil, parts.fragment == nil
        else {
            throw ResourceError(
                .invalidArgument,
                "the base URL \(text) must have the form https://host/path, without user, query and fragment")
        }
        self.scheme = scheme
        self.host = host.lowercased()
        port = parts.port
        let path = parts.percentEncodedPath
        self.path = path.hasSuffix("/") ? String(path.dropLast()) : path
    }

    /// `https://host:port`, without the path.
    var origin: String { "\(scheme)://\(host)\(port.map { ":\($0)" } ?? "")" }

    private var effectivePort: Int { port ?? (scheme == "https" ? 443 : 80) }

    /// A reference in a response as a path from the host's root; nil when it names another host, port or scheme.
    func local(_ reference: String) -> String? {
        if reference.hasPrefix("/"), !reference.hasPrefix("//") { return reference }
        guard let parts = URLComponents(string: reference), parts.scheme?.lowercased() == scheme,
            parts.host?.lowercased() == host, parts.user == nil,
            (parts.port ?? (scheme == "https" ? 443 : 80)) == effectivePort
        else { return nil }
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        return path + (parts.percentEncodedQuery.map { "?" + $0 } ?? "")
    }

    /// A reference in a response as a URI below the base URL. A path that is not below the base path is taken as
    /// relative to the base URL. The value is nil when the reference names another host.
    func relative(_ reference: String) -> String? {
        guard !reference.contains("//") || reference.contains("://") else { return nil }
        guard let local = local(reference) else { return reference.contains(":") ? nil : "/" + reference }
        guard !path.isEmpty else { return local }
        if local == path { return "/" }
        if local.hasPrefix(path + "/") { return String(local.dropFirst(path.count)) }
        return reference.hasPrefix("/") ? local : nil
    }
}
