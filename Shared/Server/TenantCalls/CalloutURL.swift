package import ServiceKit

/// The URL of an endpoint, in the one form that all readers read alike; pure (V7).
///
/// Nothing is corrected: a text that is ambiguous, or that another reader could read as another host, is refused.
package struct CalloutURL: Hashable, Sendable {
    /// The host of the URL.
    package enum Host: Hashable, Sendable {
        /// In lower case, without a final dot.
        case name(String)
        case address(IPAddress)
    }

    static let bytesMax = 2_048

    package let isHTTPS: Bool
    package let host: Host
    package let port: Int
    /// Path and query for the request line.
    package let requestTarget: String

    /// Reads `http://` or `https://`, a host, a port if it is not the scheme's own, a path and a query.
    package init(_ text: String) throws(CalloutRefusal) {
        guard text.utf8.count <= Self.bytesMax else {
            throw CalloutRefusal("the URL is longer than \(Self.bytesMax) bytes")
        }
        guard text.utf8.allSatisfy({ (0x21...0x7e).contains($0) && !Self.neverIn.contains($0) }) else {
            throw CalloutRefusal(
                #"the URL has a character that URLs do not have (space, control, \ or non-ASCII; write IDN as xn--)"#)
        }
        guard !text.contains("#") else { throw CalloutRefusal("the URL has a fragment") }
        guard let separator = text.firstRange(of: "://") else { throw CalloutRefusal(Self.wrongScheme) }
        switch text[..<separator.lowerBound].lowercased() {
        case "https": isHTTPS = true
        case "http": isHTTPS = false
        default: throw CalloutRefusal(Self.wrongScheme)
        }
        let rest = text[separator.upperBound...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard !authority.contains("@") else { throw CalloutRefusal("the URL has a user or a password") }
        let (hostText, portText) = try Self.split(authority)
        host = try Self.host(hostText)
        port = try portText.map { text throws(CalloutRefusal) in try Self.port(text) } ?? (isHTTPS ? 443 : 80)
        let target = rest[authority.endIndex...]
        guard Self.isWellEscaped(target) else { throw CalloutRefusal("the URL has a % without two digits") }
        requestTarget = target.hasPrefix("/") ? String(target) : "/" + target
    }

    /// The value of the request's Host field (RFC 9110 §7.2).
    package var hostField: String {
        let name =
            switch host {
            case .name(let name): name
            case .address(let address): address.isIPv6 ? "[\(address)]" : "\(address)"
            }
        return port == (isHTTPS ? 443 : 80) ? name : "\(name):\(port)"
    }

    private static let neverIn = Set(#"\"<>^`{|}"#.utf8)
    private static let wrongScheme = "the URL begins neither with https:// nor with http://"

    private static func split(_ authority: Substring) throws(CalloutRefusal) -> (host: Substring, port: Substring?) {
        let hostEnd: Substring.Index
        if authority.hasPrefix("[") {
            guard let bracket = authority.firstIndex(of: "]") else { throw CalloutRefusal("the host's ] is missing") }
            hostEnd = authority.index(after: bracket)
        } else {
            hostEnd = authority.firstIndex(of: ":") ?? authority.endIndex
        }
        let rest = authority[hostEnd...]
        guard rest.isEmpty || rest.hasPrefix(":") else { throw CalloutRefusal("something stands behind the host") }
        return (authority[..<hostEnd], rest.isEmpty ? nil : rest.dropFirst())
    }

    /// Reads a port: 1 to 65535 without leading zeros.
    static func port(_ text: some StringProtocol) throws(CalloutRefusal) -> Int {
        guard let number = Int(text), (1...65_535).contains(number), String(number) == text else {
            throw CalloutRefusal("the port is no number from 1 to 65535")
        }
        return number
    }

    /// Reads a host: a name, an IPv4 address, or an IPv6 address in brackets.
    static func host(_ text: some StringProtocol) throws(CalloutRefusal) -> Host {
        if text.hasPrefix("["), text.hasSuffix("]") {
            guard let address = IPAddress(String(text.dropFirst().dropLast())), address.isIPv6 else {
                throw CalloutRefusal("the host in brackets is no IPv6 address without a zone")
            }
            return .address(address)
        }
        let name = text.lowercased()
        if let address = IPAddress(name), !address.isIPv6 { return .address(address) }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        // Readers that use inet_aton read such a host as an address: 127.1, 0x7f.1, 2130706433, 0177.0.0.1.
        guard let last = labels.last, !last.utf8.allSatisfy(isDigit), !last.hasPrefix("0x") else {
            throw CalloutRefusal("the host is empty, ends in a dot, or is an address not of four decimal numbers")
        }
        guard name.utf8.count <= 253, labels.allSatisfy(isLabel) else {
            throw CalloutRefusal("the host is no DNS name of letters, digits and hyphens")
        }
        return .name(name)
    }

    private static func isLabel(_ label: Substring) -> Bool {
        (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
            && label.utf8.allSatisfy { isDigit($0) || (0x61...0x7a).contains($0) || $0 == 0x2d }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    private static func isWellEscaped(_ text: Substring) -> Bool {
        text.split(separator: "%", omittingEmptySubsequences: false).dropFirst().allSatisfy { rest in
            rest.utf8.count >= 2 && rest.prefix(2).allSatisfy(\.isHexDigit)
        }
    }
}
