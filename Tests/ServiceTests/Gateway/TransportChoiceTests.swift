import NIOCore
import NIOEmbedded
import NIOTLS
import Testing

@testable import Gateway

/// The gateway detects the protocol of a connection once (DeviceProtocol.md, Transport).
@Suite struct TransportChoiceTests {
    /// Returns the detected protocol and the bytes that follow.
    private func outcome(
        of name: String?, _ pieces: [[UInt8]], acceptsMQTT: Bool = false
    ) throws -> (chosen: [TransportChoice.Transport], bytes: [UInt8]) {
        let channel = EmbeddedChannel()
        let device = WebConnection.Device()
        var chosen: [TransportChoice.Transport] = []
        let choice = TransportChoice(acceptsMQTT: acceptsMQTT) { transport, pipeline in
            chosen.append(transport)
            try pipeline.addHandler(device)
        }
        try channel.pipeline.syncOperations.addHandler(choice)
        channel.pipeline.fireUserInboundEventTriggered(TLSUserEvent.handshakeCompleted(negotiatedProtocol: name))
        for piece in pieces { try channel.writeInbound(ByteBuffer(bytes: piece)) }
        let isLeft = (try? channel.pipeline.syncOperations.context(handler: choice)) != nil
        #expect(isLeft == chosen.isEmpty, "it leaves when it has chosen")
        return (chosen, device.bytes)
    }

    @Test func aNameDecides() throws {
        #expect(try outcome(of: "mss/1", [[71], [1]]) == ([.plain], [71, 1]))
        #expect(try outcome(of: "http/1.1", [[0], [1]]) == ([.http], [0, 1]))
        #expect(try outcome(of: "mss/1", []).chosen == [.plain])
    }

    @Test func mqttIsTakenWhereItIsSwitchedOn() throws {
        #expect(try outcome(of: "mqtt", [[0x10]], acceptsMQTT: true) == ([.mqtt], [0x10]))
        #expect(try outcome(of: nil, [[0x10, 2]], acceptsMQTT: true) == ([.mqtt], [0x10, 2]))
        #expect(try outcome(of: nil, [[0x10, 2]]) == ([.http], [0x10, 2]))
        #expect(try outcome(of: "mqtt", [[71]]) == ([.http], [71]))
    }

    @Test func withoutANameTheFirstByteDecidesAndIsNotLost() throws {
        for name in [nil, "unknown"] {
            #expect(try outcome(of: name, []).chosen == [])
            #expect(try outcome(of: name, [[]]).chosen == [])
            #expect(try outcome(of: name, [[], [0], [1, 2]]) == ([.plain], [0, 1, 2]))
            #expect(try outcome(of: name, [[71, 69], [84]]) == ([.http], [71, 69, 84]))
        }
    }
}
