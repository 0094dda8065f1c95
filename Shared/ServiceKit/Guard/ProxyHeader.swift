/// What a balancer says before the bytes of a connection that it passes on: where they come from (PROXY protocol,
/// versions 1 and 2); pure.
struct ProxyHeader: Hashable, Sendable {
    /// What the bytes so far are.
    enum Reading: Hashable, Sendable {
        /// More is to come.
        case incomplete
        case header(ProxyHeader)
        /// No header, or none of a connection over TCP.
        case malformed
    }

    /// Nil: the balancer speaks for itself, as it does to see whether somebody is there, or does not know.
    let source: SourceAddress?
    /// Bytes of the header; what follows is the connection's own.
    let length: Int

    private static let first = Array("PROXY ".utf8)
    private static let second: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    /// Bytes of a header of version 1, its line end included.
    private static let firstMax = 107
    /// Bytes of addresses and further fields of version 2; balancers send some hundred at the most.
    private static let secondMax = 2_048

    /// Reads the beginning of a connection.
    static func read(_ bytes: some Collection<UInt8>) -> Reading {
        if begins(bytes, with: second) { return readSecond(Array(bytes.prefix(16 + secondMax))) }
        if begins(bytes, with: first) { return readFirst(Array(bytes.prefix(firstMax))) }
        return .malformed
    }

    /// As far as there are bytes.
    private static func begins(_ bytes: some Collection<UInt8>, with signature: [UInt8]) -> Bool {
        zip(bytes, signature).allSatisfy(==)
    }

    /// `PROXY TCP4 192.0.2.1 198.51.100.2 4711 443` and a line end.
    private static func readFirst(_ bytes: [UInt8]) -> Reading {
        guard let end = bytes.indices.dropLast().first(where: { bytes[$0] == 0x0D && bytes[$0 + 1] == 0x0A }) else {
            return bytes.count < firstMax ? .incomplete : .malformed
        }
        let words = String(decoding: bytes[..<end], as: UTF8.self).split(
            separator: " ", omittingEmptySubsequences: false)
        if words.count >= 2, words[1] == "UNKNOWN" { return .header(ProxyHeader(source: nil, length: end + 2)) }
        guard words.count == 6, words[1] == "TCP4" || words[1] == "TCP6", let source = IPAddress(String(words[2])),
            let destination = IPAddress(String(words[3])), source.isIPv6 == (words[1] == "TCP6"),
            destination.isIPv6 == source.isIPv6, UInt16(words[4]) != nil, UInt16(words[5]) != nil
        else { return .malformed }
        return .header(ProxyHeader(source: SourceAddress(bytes: source.bytes), length: end + 2))
    }

    /// Twelve bytes of signature, version and command, family, two bytes of length, then addresses, ports and fields
    /// that are passed over.
    private static func readSecond(_ bytes: [UInt8]) -> Reading {
        guard bytes.count >= 16 else { return .incomplete }
        let rest = Int(bytes[14]) << 8 | Int(bytes[15])
        guard bytes[12] == 0x20 || bytes[12] == 0x21, rest <= secondMax else { return .malformed }
        let isLocal = bytes[12] == 0x20
        let address: Range<Int>? =
            switch bytes[13] {
            case 0x11 where rest >= 12: 16..<20
            case 0x21 where rest >= 36: 16..<32
            default: nil
            }
        // Not over TCP, or the balancer does not say: only what speaks for itself may be that.
        guard isLocal || address != nil || bytes[13] == 0 else { return .malformed }
        guard bytes.count >= 16 + rest else { return .incomplete }
        let source = isLocal ? nil : address.map { SourceAddress(bytes: Array(bytes[$0])) }
        return .header(ProxyHeader(source: source, length: 16 + rest))
    }
}
