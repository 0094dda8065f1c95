package import NIOCore

/// The header of the PROXY protocol, versions 1 and 2. A balancer sends it first, with the address of the original
/// caller; pure.
struct ProxyHeader: Hashable, Sendable {
    /// The result of reading the first bytes of a connection.
    enum Reading: Hashable, Sendable {
        /// More bytes are needed.
        case incomplete
        case header(ProxyHeader)
        /// No valid header, or the header of a connection that is not TCP.
        case malformed
    }

    /// The caller's address. A nil value means: the balancer connects for itself, for example as a health check, or
    /// does not know it.
    let source: SourceAddress?
    /// Bytes of the header; the bytes after it belong to the connection.
    let length: Int

    private static let first = Array("PROXY ".utf8)
    private static let second: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    /// Longest header of version 1 in bytes, with its line end.
    private static let firstMax = 107
    /// Longest address part of version 2 in bytes, with its extension fields. Balancers send a few hundred.
    private static let secondMax = 2_048

    /// Reads the header from the first bytes of a connection.
    static func read(_ bytes: some Collection<UInt8>) -> Reading {
        if begins(bytes, with: second) { return readSecond(Array(bytes.prefix(16 + secondMax))) }
        if begins(bytes, with: first) { return readFirst(Array(bytes.prefix(firstMax))) }
        return .malformed
    }

    /// Whether the bytes start with the signature, as far as both reach.
    private static func begins(_ bytes: some Collection<UInt8>, with signature: [UInt8]) -> Bool {
        zip(bytes, signature).allSatisfy(==)
    }

    /// Reads version 1: `PROXY TCP4 192.0.2.1 198.51.100.2 4711 443` and a line end.
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

    /// Reads version 2: 12 bytes of signature, 1 of version and command, 1 of family, 2 of length. Then come addresses,
    /// ports and extension fields, which are ignored.
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
        // Only a header without TCP addresses that names no family may be for the balancer itself.
        guard isLocal || address != nil || bytes[13] == 0 else { return .malformed }
        guard bytes.count >= 16 + rest else { return .incomplete }
        let source = isLocal ? nil : address.map { SourceAddress(bytes: Array(bytes[$0])) }
        return .header(ProxyHeader(source: source, length: 16 + rest))
    }
}

/// Reads the PROXY protocol header of a balancer's connection, reports the source, and removes itself. It forwards the
/// bytes after the header. It closes a connection without a valid header or without admission.
package final class ProxyHeaderHandler: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer

    private let admit: (SourceAddress?) -> Bool
    private var held = ByteBuffer()

    /// - Parameter admit: receives the source, or nil when the balancer connects for itself. False closes the
    ///   connection.
    package init(admit: @escaping (SourceAddress?) -> Bool) { self.admit = admit }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = Self.unwrapInboundIn(data)
        held.writeBuffer(&bytes)
        switch ProxyHeader.read(held.readableBytesView) {
        case .incomplete: return
        case .malformed: context.close(promise: nil)
        case .header(let header):
            guard admit(header.source) else { return context.close(promise: nil) }
            held.moveReaderIndex(forwardBy: header.length)
            if held.readableBytes > 0 { context.fireChannelRead(Self.wrapInboundOut(held)) }
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        }
    }
}
