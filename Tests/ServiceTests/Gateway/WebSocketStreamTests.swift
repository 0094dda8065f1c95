import NIOCore
import NIOEmbedded
import Testing

@testable import Gateway

/// The stream of frames within a WebSocket (DeviceProtocol.md, Transport; RFC 6455).
@Suite struct WebSocketStreamTests {
    private let payload = Array(0..<200).map { UInt8($0) }

    private func frame(_ opcode: UInt8, _ payload: [UInt8], fin: Bool = true, isMasked: Bool = true) -> [UInt8] {
        WebConnection.frame(opcode, payload, fin: fin, isMasked: isMasked)
    }

    private func close(_ code: UInt16) -> [UInt8] { [0x88, 2, UInt8(code >> 8), UInt8(code & 0xff)] }

    @Test func aStreamMayBeCutIntoMessagesAnywhere() throws {
        for cut in 0...payload.count {
            let connection = try WebConnection.upgraded()
            try connection.send(frame(2, Array(payload[..<cut])) + frame(2, Array(payload[cut...])))
            #expect(connection.device.bytes == payload, "cut at \(cut)")
        }
    }

    @Test func aMessageMayBeCutIntoFragmentsWithControlFramesBetween() throws {
        for cut in 0...payload.count {
            let connection = try WebConnection.upgraded()
            try connection.send(frame(2, Array(payload[..<cut]), fin: false))
            #expect(connection.device.bytes.count == cut, "nothing is gathered")
            try connection.send(frame(10, [1]) + frame(0, [], fin: false) + frame(0, Array(payload[cut...])))
            #expect(connection.device.bytes == payload, "cut at \(cut)")
        }
    }

    @Test func aWebSocketFrameMayComeInPieces() throws {
        let bytes = Array((WebConnection.handshake.joined(separator: "\r\n") + "\r\n\r\n").utf8) + frame(2, payload)
        for size in [1, 7, 64] {
            let connection = try WebConnection()
            for start in stride(from: 0, to: bytes.count, by: size) {
                try connection.send(Array(bytes[start..<min(start + size, bytes.count)]))
            }
            #expect(connection.device.bytes == payload)
        }
        // All data at once, from a client that does not wait for the handshake's answer.
        let eager = try WebConnection()
        try eager.send(bytes)
        #expect(eager.device.bytes == payload)
    }

    @Test func whatTheSessionWritesIsOneMessageEach() throws {
        let connection = try WebConnection.upgraded()
        try connection.channel.writeOutbound(ByteBuffer(bytes: payload))
        #expect(try connection.output() == [0x82, 126, 0, 200] + payload)
    }

    @Test func aPingIsAnsweredAndIsNoData() throws {
        let connection = try WebConnection.upgraded()
        try connection.send(frame(9, [1, 2, 3]) + frame(10, [4]))
        #expect(try connection.output() == [0x8a, 3, 1, 2, 3])
        #expect(connection.device.bytes.isEmpty && !connection.isClosed)
    }

    @Test func oneThatDoesNotReadGetsNoMoreAnswersToPings() throws {
        let connection = try WebConnection.upgraded()
        connection.channel.isWritable = false
        try connection.send(frame(9, [1]))
        #expect(try connection.output().isEmpty && !connection.isClosed)
    }

    @Test func aBrokenRuleEndsItWithTheReason() throws {
        let largest = AcceptedConnection.webSocketFrameBytes
        for (bytes, code, what) in [
            (frame(1, [65]), 1003, "text"), (frame(2, payload, isMasked: false), 1002, "no mask"),
            (frame(0, [1]), 1002, "a continuation of nothing"),
            (frame(2, [], fin: false) + frame(2, [1]), 1002, "a message within a message"),
            (frame(0x42, [1]), 1002, "a reserved bit"), (frame(3, [1]), 1002, "an unknown data frame"),
            (frame(11, [1]), 1002, "an unknown control frame"), (frame(9, [], fin: false), 1002, "half a ping"),
            (frame(9, payload), 1002, "a long ping"), (frame(8, [3]), 1002, "half a code"),
            (frame(8, [0, 5]), 1002, "a code that there is not"),
            (frame(2, Array(repeating: 0, count: largest + 1)), 1009, "a frame over the limit"),
            // The length in the header is enough.
            (Array(frame(2, Array(repeating: 0, count: largest + 1)).prefix(14)), 1009, "the head of one"),
        ] {
            let connection = try WebConnection.upgraded()
            try connection.send(bytes + frame(2, [9]))
            #expect(try connection.output() == close(UInt16(code)), "\(what)")
            #expect(connection.isClosed && !connection.device.bytes.contains(9), "\(what)")
        }
        let connection = try WebConnection.upgraded()
        try connection.send(frame(2, Array(repeating: 0, count: largest)))
        #expect(connection.device.bytes.count == largest)
    }

    @Test func aCloseIsAnsweredWithItsCode() throws {
        for (sent, answered) in [([], 1000), ([3, 233, 65], 1001), ([0x0f, 0xa0], 4000)] as [([UInt8], UInt16)] {
            let connection = try WebConnection.upgraded()
            try connection.send(frame(8, sent))
            #expect(try connection.output() == close(answered))
            #expect(connection.isClosed)
        }
    }

    @Test func ourCloseIs1000AndWaitsForTheirsButNotForever() throws {
        for answers in [true, false] {
            let connection = try WebConnection.upgraded()
            let closed = connection.channel.close()
            #expect(try connection.output() == close(1000))
            // The connection ignores later data and sends nothing.
            try connection.send(frame(2, payload) + frame(1, [65]))
            #expect(throws: ChannelError.outputClosed) { try connection.channel.writeOutbound(ByteBuffer(bytes: [1])) }
            #expect(!connection.isClosed && connection.device.bytes.isEmpty)
            if answers {
                try connection.send(frame(8, [3, 232]))
            } else {
                connection.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
            }
            #expect(connection.isClosed)
            try closed.wait()
            #expect(try connection.output().isEmpty)
        }
    }
}
