import NIOCore
import NIOEmbedded
import NIOHTTP1
import Synchronization

@testable import Gateway

/// An HTTP connection without a network: the handlers of the gateway's pipeline, and a device that only receives.
struct WebConnection {
    static let handshake = [
        "GET /mss/1 HTTP/1.1", "Host: gateway", "Upgrade: websocket", "Connection: keep-alive, Upgrade",
        "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol: other, mss.1",
    ]

    /// Takes the place of the session's handler.
    final class Device: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        private let state = Mutex<[UInt8]>([])

        /// The received bytes.
        var bytes: [UInt8] { state.withLock { $0 } }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = Self.unwrapInboundIn(data)
            state.withLock { $0 += bytes.readableBytesView }
        }
    }

    let channel = EmbeddedChannel()
    let device = Device()

    init(servesFiles: Bool = true) throws {
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try AcceptedConnection.addHTTP(channel.pipeline.syncOperations, servesFiles: servesFiles) { [device] pipeline in
            try pipeline.addHandler(device)
        }
    }

    /// Makes a connection and upgrades it to a WebSocket.
    static func upgraded() throws -> WebConnection {
        let connection = try WebConnection()
        let answer = try connection.answer(to: handshake)
        guard answer.hasPrefix("HTTP/1.1 101 ") else { throw ChannelError.connectPending }
        return connection
    }

    /// Whether the gateway has closed the connection.
    var isClosed: Bool { !channel.isActive }

    func send(_ bytes: [UInt8]) throws {
        try channel.writeInbound(ByteBuffer(bytes: bytes))
        channel.embeddedEventLoop.run()
    }

    /// The bytes that the gateway has sent since the last call.
    func output() throws -> [UInt8] {
        var bytes: [UInt8] = []
        while case .byteBuffer(let buffer)? = try channel.readOutbound(as: IOData.self) {
            bytes += buffer.readableBytesView
        }
        return bytes
    }

    /// Sends a request of these lines and returns the answer as text.
    func answer(to lines: [String]) throws -> String {
        try send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
        return String(decoding: try output(), as: UTF8.self)
    }

    /// One WebSocket frame of a client.
    ///
    /// - Parameter opcode: 0 continuation, 1 text, 2 binary, 8 close, 9 ping, 10 pong; with the reserved bits above.
    static func frame(_ opcode: UInt8, _ payload: [UInt8], fin: Bool = true, isMasked: Bool = true) -> [UInt8] {
        var bytes = [opcode | (fin ? 0x80 : 0)]
        let mask: UInt8 = isMasked ? 0x80 : 0
        switch payload.count {
        case ...125: bytes.append(UInt8(payload.count) | mask)
        case ...65_535: bytes += [126 | mask, UInt8(payload.count >> 8), UInt8(payload.count & 0xff)]
        default: bytes += [127 | mask] + (0..<8).map { UInt8(payload.count >> (56 - 8 * $0) & 0xff) }
        }
        let key: [UInt8] = isMasked ? [0x1f, 0x2e, 0x3d, 0x4c] : [0, 0, 0, 0]
        return bytes + (isMasked ? key : []) + payload.enumerated().map { $1 ^ key[$0 % 4] }
    }
}
