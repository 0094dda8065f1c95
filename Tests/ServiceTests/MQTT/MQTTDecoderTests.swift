import DeliveryHistory
import NIOCore
import Testing

@testable import MQTT

@Suite("MQTT packets") struct MQTTDecoderTests {
    /// Decodes the bytes in one piece or byte by byte.
    private func read(_ bytes: [UInt8], inPieces: Bool = false) throws -> [MQTTClientPacket] {
        var decoder = MQTTDecoder(maxBytes: 1_024)
        var (buffer, packets) = (ByteBuffer(), [MQTTClientPacket]())
        for piece in inPieces ? bytes.map({ [$0] }) : [bytes] {
            buffer.writeBytes(piece)
            while let packet = try decoder.decode(buffer: &buffer) { packets.append(packet) }
        }
        #expect(buffer.readableBytes == 0)
        return packets
    }

    private func fault(_ bytes: [UInt8]) -> MQTTFault? {
        do {
            _ = try read(bytes)
            return nil
        } catch { return error as? MQTTFault }
    }

    private static let versions = [MQTTVersion.v311, .v5]

    @Test("a client's packets are decoded, in one piece or byte by byte", arguments: versions)
    func packets(version: MQTTVersion) throws {
        let bytes =
            MQTTPackets.connect(version) + MQTTPackets.subscribe(version, [("UCHAT", 1), ("#", 2)])
            + MQTTPackets.puback(0x0102) + MQTTPackets.pingreq
            + MQTTPackets.packet(0xA2, [0, 2] + (version == .v5 ? [0] : []) + MQTTPackets.text("UCHAT"))
            + MQTTPackets.packet(0x32, MQTTPackets.text("t") + [0, 3] + (version == .v5 ? [0] : []) + [1, 2, 3])
            + MQTTPackets.disconnect
        let connect = MQTTConnect(
            version: version, isCleanStart: false, keepAlive: 30, clientID: "d", userName: "w_app/u",
            password: Array("s".utf8))
        let expected: [MQTTClientPacket] = [
            .connect(connect),
            .subscribe(
                packetID: 1,
                [.init(filter: "UCHAT", qualityOfService: 1), .init(filter: "#", qualityOfService: 2)]),
            .puback(packetID: 0x0102), .pingreq, .unsubscribe(packetID: 2, filters: ["UCHAT"]),
            .publish(.init(topic: "t", qualityOfService: 1, packetID: 3)), .disconnect,
        ]
        #expect(try read(bytes) == expected && read(bytes, inPieces: true) == expected)
    }

    @Test("properties of version 5: used ones are read, others ignored, doubled ones refused")
    func properties() throws {
        let user = [0x26] + MQTTPackets.text("osName") + MQTTPackets.text("iOS")
        let known: [UInt8] = [0x11, 0, 0, 0, 9, 0x21, 0, 7, 0x27, 0, 0, 0x20, 0, 0x19, 1] + user + user
        guard case .connect(let connect) = try read(MQTTPackets.connect(.v5, properties: known)).first else {
            Issue.record("no connect")
            return
        }
        #expect(connect.receiveMaximum == 7 && connect.maximumPacketSize == 0x2000)
        #expect(connect.userProperties == [.init("osName", "iOS"), .init("osName", "iOS")])
        #expect(fault(MQTTPackets.connect(.v5, properties: [0x21, 0, 7, 0x21, 0, 7])) == .protocolError)
        #expect(fault(MQTTPackets.connect(.v5, properties: [0x21, 0, 0])) == .protocolError)
        // A property of another packet, an unknown property, and a truncated one.
        for properties: [UInt8] in [[0x0B, 1], [0x7E, 1], [0x21, 0]] {
            #expect(fault(MQTTPackets.connect(.v5, properties: properties)) == .malformedPacket)
        }
    }

    @Test("packets that the specifications forbid end the connection") func malformed() {
        let connect = MQTTPackets.connect(.v311)
        let cases: [([UInt8], MQTTFault)] = [
            // Before CONNECT, and a second one.
            (MQTTPackets.pingreq, .protocolError), (connect + connect, .protocolError),
            ([0x11] + connect.dropFirst(), .protocolError),
            (MQTTPackets.packet(0x10, MQTTPackets.text("MQIsdp") + [3, 0, 0, 0]), .unsupportedVersion),
            (MQTTPackets.packet(0x10, MQTTPackets.text("MQTT") + [6, 0, 0, 0]), .unsupportedVersion),
            (MQTTPackets.connect(.v311, flags: 0x01), .malformedPacket),
            (MQTTPackets.connect(.v311, flags: 0x08), .malformedPacket),
            (MQTTPackets.connect(.v311, user: nil), .malformedPacket),
            (MQTTPackets.connect(.v311, client: "a\u{0}b"), .malformedPacket),
            (MQTTPackets.packet(0x10, Array(connect.dropFirst(2)) + [0]), .malformedPacket),
            ([0x10, 0xFF, 0xFF, 0xFF, 0xFF], .malformedPacket), ([0x10, 0x81, 0x08], .packetTooLarge),
            (connect + MQTTPackets.packet(0x80, [0, 1] + MQTTPackets.text("a") + [0]), .malformedPacket),
            (connect + MQTTPackets.packet(0x82, [0, 1]), .malformedPacket),
            (connect + MQTTPackets.packet(0x82, [0, 0] + MQTTPackets.text("a") + [0]), .malformedPacket),
            (connect + MQTTPackets.packet(0x82, [0, 1] + MQTTPackets.text("a") + [3]), .malformedPacket),
            (connect + MQTTPackets.packet(0x36, MQTTPackets.text("a")), .malformedPacket),
            (connect + MQTTPackets.packet(0x20, [0, 0]), .malformedPacket),
            (connect + MQTTPackets.packet(0xF0, []), .malformedPacket),
            (connect + MQTTPackets.packet(0x50, [0, 1]), .protocolError),
            (connect + MQTTPackets.packet(0xC0, [0]), .malformedPacket),
        ]
        for (bytes, expected) in cases { #expect(fault(bytes) == expected, "\(bytes)") }
    }

    @Test("no bytes crash it", arguments: [1, 2] as [UInt64]) func anything(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<5_000 {
            let version = Self.versions[Int.random(in: 0...1, using: &random)]
            var bytes =
                MQTTPackets.connect(version) + MQTTPackets.subscribe(version, [("a/+", 1)]) + MQTTPackets.puback(7)
            for _ in 0..<Int.random(in: 0...5, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: .min ... .max, using: &random)
            }
            var decoder = MQTTDecoder(maxBytes: 1_024)
            var buffer = ByteBuffer(bytes: bytes)
            while let packet = try? decoder.decode(buffer: &buffer) { _ = packet }
        }
    }

    @Test("topic filters match as the specification says, and bad filters are refused")
    func filters() throws {
        let matches = [
            ("a", "a"), ("#", "a"), ("#", "a/b"), ("+", "a"), ("a/#", "a"), ("a/#", "a/b/c"), ("a/+", "a/b"),
            ("+/recall", "a/recall"), ("a//b", "a//b"), ("+/+", "/"),
        ]
        for (filter, topic) in matches {
            #expect(MQTTTopicFilter(filter)?.matches(topic) == true, "\(filter) \(topic)")
        }
        let others = [
            ("a", "b"), ("a", "a/b"), ("+", "a/b"), ("a/+", "a"), ("a/b", "a"), ("#", "$SYS/a"), ("+/a", "$b/a"),
        ]
        for (filter, topic) in others {
            #expect(MQTTTopicFilter(filter)?.matches(topic) == false, "\(filter) \(topic)")
        }
        for filter in ["", "a#", "#/a", "a+/b", "a/#/b", "##"] { #expect(MQTTTopicFilter(filter) == nil, "\(filter)") }
        #expect(MQTTTopicFilter("$share/g/a")?.isShared == true && MQTTTopicFilter("a")?.isShared == false)
    }
}
