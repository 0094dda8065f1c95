import NIOHTTP1

/// Rejects request heads that the decoder accepts but that a proxy could read differently (SEC5); pure.
enum RequestHeadCheck {
    /// The fault of a head as a sentence for the caller, with the correct form; nil for a valid head.
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

    /// Whether the head requests an upgrade. The guard refuses upgrades, and the decoder reads nothing after such a
    /// head.
    static func asksForUpgrade(_ head: HTTPRequestHead) -> Bool {
        head.headers.contains(name: "Upgrade")
            && head.headers[canonicalForm: "Connection"].contains { $0.lowercased() == "upgrade" }
    }

    /// Whether an absolute request target names the same host as the Host field. A proxy could route by either of them.
    private static func isOfHost(_ target: String, _ host: String?) -> Bool {
        guard !target.hasPrefix("/"), let host, let scheme = target.firstRange(of: "://") else { return true }
        return target[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" }.lowercased() == host.lowercased()
    }
}

/// The characters that the Host field of HTTP may contain (RFC 9110, 7.2); pure.
package enum HostField {
    /// Whether the text contains only the characters of a host name or an address, with or without a port. Another
    /// reader of the request could take any other character for the end of the field (SEC5).
    package static func isValid(_ text: String) -> Bool {
        text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "-._~:[]%".utf8.contains(byte)
            }
        }
    }
}
