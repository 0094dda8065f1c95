/// The host name or address and the port of a server.
package struct ServerAddress: Hashable, Sendable, CustomStringConvertible {
    /// A name, an IP address, or the folder of a Unix socket, which begins with `/`.
    package var host: String
    package var port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Parses `HOST`, `HOST:PORT` or `[IPV6]:PORT`, one or several separated by commas; nil for any other text.
    ///
    /// - Parameter port: of an element without a port.
    package static func list(_ text: String, defaultPort port: Int) -> [ServerAddress]? {
        var addresses: [ServerAddress] = []
        for element in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let address = parse(element.drop { $0 == " " }, defaultPort: port) else { return nil }
            addresses.append(address)
        }
        return addresses
    }

    private static func parse(_ text: Substring, defaultPort: Int) -> ServerAddress? {
        var (host, port) = (text, defaultPort)
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            let rest = text[text.index(after: end)...]
            if !rest.isEmpty {
                guard rest.first == ":", let number = number(rest.dropFirst()) else { return nil }
                port = number
            }
        } else if !text.hasPrefix("/"), text.count(where: { $0 == ":" }) == 1, let colon = text.firstIndex(of: ":") {
            guard let number = number(text[text.index(after: colon)...]) else { return nil }
            (host, port) = (text[..<colon], number)
        }
        guard !host.isEmpty, !host.contains(where: \.isWhitespace) else { return nil }
        return ServerAddress(host: String(host), port: port)
    }

    private static func number(_ text: Substring) -> Int? {
        Int(text).flatMap { (1...65_535).contains($0) ? $0 : nil }
    }
}
