import MQTT
import NIOCore
import Testing

@testable import Torture

/// The MQTT codec of the torture devices and the gateway's codec agree, although they share no code.
struct MQTTClientCodecTests {
    private func received(_ bytes: ByteBuffer...) throws -> [MQTTClientPacket] {
        var decoder = MQTTDecoder(maxBytes: 65_536)
        var buffer = ByteBuffer()
        for part in bytes { buffer.writeImmutableBuffer(part) }
        var packets: [MQTTClientPacket] = []
        while let packet = try decoder.decode(buffer: &buffer) { packets.append(packet) }
        return packets
    }

    @Test("A gateway reads what the device sends")
    func requests() throws {
        let user = String(repeating: "u", count: 200)
        let packets = try received(
            MQTTRequest.connect(client: "d", user: user, password: "s", window: 3), MQTTRequest.subscribe("#"),
            MQTTRequest.puback(7), MQTTRequest.pingreq, MQTTRequest.disconnect)
        guard case .connect(let connect)? = packets.first else {
            Issue.record("no CONNECT")
            return
        }
        #expect(connect.clientID == "d" && connect.userName == user && connect.password == Array("s".utf8))
        #expect(connect.version == .v5 && connect.isCleanStart && connect.receiveMaximum == 3)
        #expect(
            Array(packets.dropFirst()) == [
                .subscribe(packetID: 1, [MQTTSubscription(filter: "#", qualityOfService: 1)]), .puback(packetID: 7),
                .pingreq, .disconnect,
            ])
    }

    @Test("The device reads a gateway's packets, with any cut")
    func replies() throws {
        let encoder = MQTTEncoder(version: .v5, maxBytes: 65_536)
        var bytes = ByteBuffer()
        encoder.encode(.connack(isSessionPresent: false, .success, keepAlive: 60), into: &bytes)
        var publish = MQTTPublish(
            topic: "CHAT", payload: ByteBuffer(string: String(repeating: "x", count: 300)), packetID: 9)
        publish.isText = true
        publish.expiry = 5
        publish.userProperties = [MQTTUserProperty("oplogId", "12"), MQTTUserProperty("thirdMsgId", "push-1")]
        encoder.encode(.publish(publish), into: &bytes)
        encoder.encode(.pingresp, into: &bytes)
        encoder.encode(.disconnect(.sessionTakenOver), into: &bytes)
        var (buffer, decoder, replies) = (ByteBuffer(), MQTTReplyDecoder(), [MQTTReply]())
        for byte in bytes.readableBytesView {
            buffer.writeInteger(byte)
            while let reply = try decoder.decode(buffer: &buffer) { replies.append(reply) }
        }
        guard replies.count == 4, case .connack(0) = replies[0], case .publish(let data) = replies[1],
            case .pingresp = replies[2], case .disconnect(0x8E) = replies[3]
        else {
            Issue.record("\(replies)")
            return
        }
        #expect(data.topic == "CHAT" && data.packetID == 9 && data.payload.count == 300)
        #expect(data.properties == ["oplogId": "12", "thirdMsgId": "push-1"])
    }
}
