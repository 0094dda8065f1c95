import DeliveryHistory
import Testing

@testable import ServiceKit

@Suite("PROXY protocol") struct ProxyHeaderTests {
    /// A header of version 1.
    static func first(_ source: String) -> [UInt8] {
        let family = source.contains(":") ? "TCP6 \(source) ::1" : "TCP4 \(source) 127.0.0.1"
        return Array("PROXY \(family) 4711 443\r\n".utf8)
    }

    /// A header of version 2 with both addresses, both ports and an additional field.
    static func second(_ command: UInt8, _ family: UInt8, _ address: [UInt8]) -> [UInt8] {
        let rest = address.isEmpty ? [] : address + address + [0x12, 0x67, 0x01, 0xBB] + [0x04, 0, 1, 0]
        return [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A, command, family]
            + [UInt8(rest.count >> 8), UInt8(rest.count & 0xFF)] + rest
    }

    private static let address6: [UInt8] = [0x20, 0x01, 0x0D, 0xB8] + Array(repeating: 1, count: 12)

    private static let headers: [(bytes: [UInt8], source: SourceAddress?)] = [
        (first("192.0.2.1"), SourceAddress(text: "192.0.2.1")),
        (first("2001:db8::7"), SourceAddress(text: "2001:db8::7")),
        (Array("PROXY UNKNOWN\r\n".utf8), nil), (Array("PROXY UNKNOWN ::1 ::1 1 2\r\n".utf8), nil),
        (second(0x21, 0x11, [192, 0, 2, 1]), SourceAddress(text: "192.0.2.1")),
        (second(0x21, 0x21, address6), SourceAddress(bytes: address6)), (second(0x20, 0x00, []), nil),
        (second(0x20, 0x11, [192, 0, 2, 1]), nil), (second(0x21, 0x00, []), nil),
    ]

    @Test(
        "a header of either version has the source, cut at any byte, and uses no byte of the following data")
    func sources() {
        for (bytes, source) in Self.headers {
            for length in 0..<bytes.count { #expect(ProxyHeader.read(bytes.prefix(length)) == .incomplete) }
            for next: [UInt8] in [[], [0x16], Array(repeating: 0x0A, count: 4_000)] {
                #expect(
                    ProxyHeader.read(bytes + next) == .header(ProxyHeader(source: source, length: bytes.count)),
                    "\(bytes)")
            }
        }
    }

    @Test("bytes that are not a header of TCP are refused at the first wrong byte")
    func malformed() {
        let texts = [
            "GET / HTTP/1.1\r\n\r\n", "PROXY TCP4 192.0.2.1 127.0.0.1 1\r\n", "PROXY TCP4 2001:db8::7 ::1 1 2\r\n",
            "PROXY TCP6 192.0.2.1 127.0.0.1 1 2\r\n", "PROXY TCP4 192.0.2.1 ::1 1 2\r\n",
            "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP4 192.0.2.1 127.0.0.1 1 65536\r\n", "PROXY TCP4 192.0.2.01 127.0.0.1 1 2\r\n",
            "PROXY  TCP4 192.0.2.1 127.0.0.1 1 2\r\n", "PROXY \r\n", "proxy TCP4 192.0.2.1 127.0.0.1 1 2\r\n",
            "PROXY " + String(repeating: "1", count: 101),
        ]
        for text in texts { #expect(ProxyHeader.read(Array(text.utf8)) == .malformed, "\(text)") }
        #expect(ProxyHeader.read([0x16, 0x03]) == .malformed)
        for bytes in [
            Self.second(0x11, 0x11, [1, 2, 3, 4]), Self.second(0x22, 0x11, [1, 2, 3, 4]),
            Self.second(0x21, 0x12, [1, 2, 3, 4]), Self.second(0x21, 0x11, []), Self.second(0x21, 0x31, Self.address6),
            Array(Self.second(0x21, 0x11, [1, 2, 3, 4]).prefix(14)) + [0x08, 0x01],
        ] { #expect(ProxyHeader.read(bytes) == .malformed, "\(bytes)") }
    }

    @Test("no bytes crash it, and it uses only existing bytes", arguments: [1, 2, 3] as [UInt64])
    func anything(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<20_000 {
            var bytes = Self.headers[Int.random(in: 0..<Self.headers.count, using: &random)].bytes
            for _ in 0..<Int.random(in: 0...4, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: .min ... .max, using: &random)
            }
            bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random)))
            if case .header(let header) = ProxyHeader.read(bytes) { #expect(header.length <= bytes.count) }
        }
    }
}
