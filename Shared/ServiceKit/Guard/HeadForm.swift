import NIOHTTP1

/// What the decoder lets pass of a head and a proxy before us might read differently (reliability SEC5); pure.
enum HeadForm {
    /// What is wrong with the head and how to send it, as a sentence for the caller; nil when nothing is.
    static func fault(of head: HTTPRequestHead) -> String? {
        let encodings = head.headers["Transfer-Encoding"].map { $0.lowercased() }
        guard encodings.isEmpty || (encodings == ["chunked"] && head.version == .http1_1) else {
            return "Transfer-Encoding is wrong; send chunked in HTTP/1.1, or Content-Length alone."
        }
        let hosts = head.headers["Host"]
        guard hosts.count == 1 || (hosts.isEmpty && head.version == .http1_0), hosts.allSatisfy(HostField.isValid)
        else {
            return "Host is wrong; send it once, a name or an address with or without a port."
        }
        guard !head.uri.utf8.contains(UInt8(ascii: "#")), isOfHost(head.uri, hosts.first) else {
            return "The request target is wrong; send path and query alone."
        }
        return nil
    }

    /// Whether the upgrade that the head asks for, and does not get, ends what the decoder reads of the connection.
    static func asksForUpgrade(_ head: HTTPRequestHead) -> Bool {
        head.headers.contains(name: "Upgrade")
            && head.headers[canonicalForm: "Connection"].contains { $0.lowercased() == "upgrade" }
    }

    /// An absolute target must name the host that the Host field names: what routes by one must not differ from us.
    private static func isOfHost(_ target: String, _ host: String?) -> Bool {
        guard !target.hasPrefix("/"), let host, let scheme = target.firstRange(of: "://") else { return true }
        return target[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" }.lowercased() == host.lowercased()
    }
}
