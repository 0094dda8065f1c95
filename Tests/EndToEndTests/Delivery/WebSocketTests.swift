import AsyncHTTPClient
import DeviceProtocol
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import SwiftProtobuf
import TestSupport
import Testing

extension SecondRunningSystem {
    /// The two transports of the device protocol on one port (DeviceProtocol.md, Transport).
    @Suite("Transports")
    struct WebSocketTests: RuleSuite {
        let stack: Stack
        let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis)
        }

        private func payloads(_ device: RawDevice) -> [String] {
            device.batches.filter { $0.bizType == "UCHAT" }.flatMap(\.entries).map {
                String(decoding: $0.payload, as: UTF8.self)
            }
        }

        private func shows(_ device: RawDevice, _ expected: [String]) async throws {
            try await device.waits(for: "\(expected)") { _ in payloads(device) == expected }
        }

        /// Acknowledges the last batch. Returns the device's new position.
        private func storesLast(_ device: RawDevice) async throws -> Mss_Device_V1_SyncPoint {
            let batch = try requireValue(device.batches.last, "no batch")
            try await device.acknowledge(batch)
            // The pong follows the acknowledgement.
            try await device.send(.with { $0.ping.number = 7 })
            try await device.waits(for: "the pong") { $0.contains { $0.pong.number == 7 } }
            return .with {
                $0.kind = batch.kind
                $0.bizType = batch.bizType
                $0.oplogID = batch.upto
            }
        }

        private func frame(_ packet: Mss_Device_V1_Packet) -> ByteBuffer {
            var buffer = ByteBuffer()
            PacketEncoder.encode(packet, into: &buffer)
            return buffer
        }

        private func code(_ device: RawDevice) -> UInt32? { device.received.last?.close.code }

        @Test(
            "stored and new data is delivered, acknowledged, and not sent again by another gateway",
            arguments: RawDevice.Transport.allCases)
        func mainJob(transport: RawDevice.Transport) async throws {
            let (user, name) = ("web-\(transport)-u", "web-\(transport)-d")
            try await push("UCHAT", to: user, ["1"], expecting: "NOT_ONLINE")
            let device = try await RawDevice.connect(stack, over: transport, device: name, user: user)
            try await device.isCaughtUp()
            try await shows(device, ["1"])
            try await push("UCHAT", to: user, ["2"], expecting: "SUCCESS")
            try await shows(device, ["1", "2"])
            let position = try await storesLast(device)
            try stack.process("gateway-0").kill()
            try await device.isClosed()
            let again = try await RawDevice.connect(
                stack, over: transport, gateway: 1, device: name, user: user
            ) { $0.bind.syncPoints = [position] }
            try await push("UCHAT", to: user, ["3"], expecting: "SUCCESS")
            try await shows(again, ["3"])
            try await again.send(.with { $0.close.code = 1000 })
            #expect(try await again.isClosed() == (transport == .webSocket ? 1000 : nil))
            try await eventually("the gateway is back", within: .seconds(20)) { await stack.isReady() }
        }

        @Test("a device that changes its transport continues from its position, and the older connection ends")
        func move() async throws {
            var older: RawDevice?
            var positions: [Mss_Device_V1_SyncPoint] = []
            for (number, transport) in [RawDevice.Transport.webSocket, .plain, .webSocket].enumerated() {
                let device = try await RawDevice.connect(
                    stack, over: transport, device: "move-d", user: "move-u"
                ) { [positions] in $0.bind.syncPoints = positions }
                try await device.isCaughtUp()
                if let older {
                    #expect(try await older.isClosed() == (transport == .plain ? 1000 : nil))
                    #expect(code(older) == CloseCode.superseded.rawValue)
                }
                try await push("UCHAT", to: "move-u", ["\(number)"], expecting: "SUCCESS")
                try await shows(device, ["\(number)"])
                positions = [try await storesLast(device)]
                older = device
            }
            try await older?.disconnect()
        }

        @Test("frames may be cut anywhere, over messages and fragments, and several may share one")
        func cuts() async throws {
            let device = try await RawDevice.open(stack, over: .webSocket)
            var bytes = frame(RawDevice.connectPacket(device: "cut-d", user: "cut-u"))
            // Not one after the other: the gateway waits 5 s for a whole Connect.
            let pieces = (0..<bytes.readableBytes).compactMap { _ in bytes.readSlice(length: 1) } + [ByteBuffer()]
            try await device.send(fragments: pieces)
            try await device.isCaughtUp()
            for cut in 0...6 {
                var ping = frame(.with { $0.ping.number = UInt64(cut) + 1 })
                let first = try requireValue(ping.readSlice(length: cut), "short")
                try await device.send(.binary, first)
                try await device.send(.ping, ByteBuffer(string: "between"))
                try await device.send(.binary, ping)
            }
            var both = frame(.with { $0.ping.number = 100 })
            both.writeImmutableBuffer(frame(.with { $0.ping.number = 101 }))
            try await device.send(.binary, both)
            try await device.waits(for: "all pongs") { packets in
                packets.map(\.pong.number).filter { $0 > 0 } == [1, 2, 3, 4, 5, 6, 7, 100, 101]
            }
            try await device.disconnect()
        }

        @Test("a violation of the rules of WebSocket or of frames closes the connection with the reason")
        func violations() async throws {
            let length = DeviceProtocolLimits.toGatewayBytes + 5
            for (opcode, data, isMasked, closeCode) in [
                (.text, ByteBuffer(string: "hello"), true, 1003), (.binary, ByteBuffer(bytes: [0]), false, 1002),
                (.binary, ByteBuffer(repeating: 0, count: length), true, 1009),
                (.binary, ByteBuffer(bytes: [0, 1, 0, 1]), true, 1000),
            ] as [(WebSocketOpcode, ByteBuffer, Bool, UInt16)] {
                let device = try await RawDevice.open(stack, over: .webSocket)
                try await device.send(opcode, data, isMasked: isMasked)
                #expect(try await device.isClosed() == closeCode)
                #expect(code(device) == (closeCode == 1000 ? CloseCode.protocolViolation.rawValue : nil))
            }
        }

        @Test("over HTTP the gateway serves the demo page and the client library, and refuses other requests clearly")
        func files() async throws {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .file(stack.certificateAuthority)
            var configuration = HTTPClient.Configuration()
            configuration.tlsConfiguration = tls
            let client = HTTPClient(configuration: configuration)
            for (method, path, status) in [
                (.GET, "/", 200), (.HEAD, "/", 200), (.GET, "/mss-client.js", 200), (.GET, "/demo.js", 200),
                (.GET, "/demo.css", 200), (.GET, "/none", 404), (.POST, "/mss/1", 405), (.GET, "/mss/1", 426),
            ] as [(HTTPMethod, String, UInt)] {
                var request = HTTPClientRequest(url: "https://127.0.0.1:\(stack.gateways[0])\(path)")
                request.method = method
                let answer = try await client.execute(request, timeout: .seconds(10))
                #expect(answer.status.code == status, "\(method) \(path)")
                #expect(answer.headers["X-Content-Type-Options"] == ["nosniff"])
                let body = try await answer.body.collect(upTo: 1 << 20)
                #expect((body.readableBytes > 0) == (method != .HEAD))
            }
            try await client.shutdown()
        }

        @Test("a connection without a Connect within 5 s of the accept is closed, at whatever point it stopped")
        func silence() async throws {
            let half = ByteBuffer(string: "GET /mss/1 HTTP/1.1\r\nHost: gateway\r\n")
            try await withThrowingTaskGroup(of: Void.self) { group in
                // Sends nothing at all, and sends the beginning of a TLS handshake.
                group.addTask { try await isClosedInTime(named: nil, isTLS: false) }
                group.addTask { try await isClosedInTime(named: nil, isTLS: false, ByteBuffer(bytes: [22, 3, 1, 2])) }
                for name in [nil, "mss/1", "http/1.1"] { group.addTask { try await isClosedInTime(named: name) } }
                group.addTask { try await isClosedInTime(named: nil, half) }
                group.addTask { try await isClosedInTime(named: "http/1.1", half) }
                group.addTask { try await isClosedInTime(named: "mss/1", ByteBuffer(bytes: [0, 0, 0, 9, 1])) }
                group.addTask {
                    let device = try await RawDevice.open(stack, over: .webSocket)
                    try await device.send(.ping, ByteBuffer())
                    #expect(try await device.isClosed() == 1000)
                    #expect(code(device) == CloseCode.idle.rawValue)
                }
                try await group.waitForAll()
            }
        }

        /// Connects, sends these bytes, and waits for the close.
        private func isClosedInTime(named name: String?, isTLS: Bool = true, _ words: ByteBuffer? = nil) async throws {
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.trustRoots = .file(stack.certificateAuthority)
            configuration.applicationProtocols = [name].compactMap(\.self)
            let tls = try NIOSSLContext(configuration: configuration)
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        guard isTLS else { return }
                        try channel.pipeline.syncOperations.addHandler(
                            NIOSSLClientHandler(context: tls, serverHostname: nil))
                    }
                }
                .connect(host: "127.0.0.1", port: stack.gateways[0]).get()
            if let words { try await channel.writeAndFlush(words) }
            try await eventually(
                "closed: \(name ?? "no name"), \(words?.readableBytes ?? 0) bytes", within: .seconds(7)
            ) { !channel.isActive }
        }
    }
}
