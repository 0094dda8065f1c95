import DeliveryHistory
import DeviceProtocol
import Foundation
import NIOCore
import SwiftProtobuf
import TestSupport
import Testing

/// Frames of the device protocol: golden bytes from DeviceProtocol.md, every split, hostile input.
@Suite struct DeviceFrameTests {
    private static let connect = Mss_Device_V1_Packet.with {
        $0.connect.protocolVersion = 1
        $0.connect.instanceID = "demo_app"
        $0.connect.deviceID = "d1"
        $0.connect.storeID = "s1"
        $0.connect.osName = "iOS"
        $0.connect.appVersion = "2.0"
        $0.connect.bind.bindNumber = 1
        $0.connect.bind.userID = "u1"
        $0.connect.bind.sessionID = "x"
        $0.connect.bind.syncPoints = [
            .with {
                $0.bizType = "UCHAT"
                $0.oplogID = 4
            }
        ]
    }
    private static let connected = Mss_Device_V1_Packet.with {
        $0.connected.connectionID = "17"
        $0.connected.heartbeatSeconds = 60
        $0.connected.maxFrameBytes = 65_536
        $0.connected.serverTimeMs = 1_700_000_000_000
        $0.connected.firstResendMs = 10_000
        $0.connected.maxHeartbeatSeconds = 300
    }
    private static let report = Mss_Device_V1_Packet.with {
        $0.confirmReport.reportID = 1
        $0.confirmReport.channels = [
            .with {
                $0.bizType = "UCHAT"
                $0.bindNumber = 1
                $0.oplogIds = [9, 300]
            }
        ]
    }
    private static let question = Mss_Device_V1_Packet.with {
        $0.historyRequest.requestNumber = 1
        $0.historyRequest.bizType = "UCHAT"
        $0.historyRequest.bindNumber = 1
        $0.historyRequest.before = 9
        $0.historyRequest.count = 20
    }
    private static let conversations = Mss_Device_V1_Packet.with {
        $0.summaryRequest.requestNumber = 1
        $0.summaryRequest.bindNumber = 1
        $0.summaryRequest.count = 16
        $0.summaryRequest.conversationsOf = "UCHAT"
    }
    private static let ping = Mss_Device_V1_Packet.with { $0.ping.number = 7 }
    private static let push = Mss_Device_V1_Packet.with {
        $0.push.batches = [
            .with {
                $0.bizType = "UCHAT"
                $0.bindNumber = 1
                $0.after = 4
                $0.upto = 9
                $0.entries = [
                    .with {
                        $0.oplogID = 9
                        $0.payload = Data("hello".utf8)
                        $0.thirdMessageID = "m1"
                        $0.createdAtMs = 1_700_000_000_000
                    }
                ]
            }
        ]
    }
    private static let operation = Mss_Device_V1_Packet.with {
        $0.submitOperations.number = 1
        $0.submitOperations.bindNumber = 1
        $0.submitOperations.operations = [
            .with {
                $0.operationID = "o1"
                $0.component = "ORDER"
                $0.entityKey = "17"
                $0.name = "update"
                $0.body = Data(#"{"a":1}"#.utf8)
                $0.submittedAtMs = 1_700_000_000_000
            }
        ]
    }
    private static let keeping = Mss_Device_V1_Packet.with {
        $0.keepParameters.number = 1
        $0.keepParameters.bindNumber = 1
        $0.keepParameters.parameters = [
            .with {
                $0.bizType = "UCHAT"
                $0.name = "max"
                $0.value = "3"
            }
        ]
    }
    private static let taken = Mss_Device_V1_Packet.with { $0.operationsTaken.number = 1 }
    private static let storedAck = Mss_Device_V1_Packet.with {
        $0.storedAck.channels = [
            .with {
                $0.bizType = "UCHAT"
                $0.bindNumber = 1
                $0.upto = 9
            }
        ]
    }
    @Test(arguments: [
        ("A device connects", connect), ("The gateway's greeting", connected), ("A ping", ping), ("Oplog 9", push),
        ("The device's answer", storedAck), ("Its report", report), ("A question", question),
        ("The first 16 conversations", conversations),
        ("An order is updated", operation), ("The service has taken that", taken),
        ("A value is to be kept", keeping),
    ])
    func examplesOfTheTextHoldToTheByte(start: String, packet: Mss_Device_V1_Packet) throws {
        #expect(bytes(of: packet) == unhex(try exampleInText(after: start)))
        #expect(try decoded([bytes(of: packet)]) == [packet])
    }

    @Test func aStreamMayBeCutAnywhere() throws {
        let packets = [Self.connect, Self.ping, Self.push, Mss_Device_V1_Packet(), Self.storedAck]
        let stream = packets.flatMap(bytes(of:))
        for cut in 0...stream.count {
            #expect(try decoded([Array(stream[..<cut]), Array(stream[cut...])]) == packets, "cut at \(cut)")
        }
        #expect(try decoded(stream.map { [$0] }) == packets)
    }

    @Test func aFrameLargerThanTheLimitFailsBeforeItIsRead() throws {
        let limit = DeviceProtocolLimits.toGatewayBytes
        #expect(throws: FrameError.tooLarge(bytes: limit + 1)) { try decoded([[0, 1, 0, 1]]) }
        #expect(throws: FrameError.tooLarge(bytes: 0xffff_ffff)) { try decoded([[0xff, 0xff, 0xff, 0xff]]) }
        // After the first frame, an operation frame can be longer. Its first bytes decide.
        let ping = bytes(of: Self.ping)
        #expect(try decoded([ping, [0, 1, 0, 1], [0xA2], [1]]) == [Self.ping])
        #expect(throws: FrameError.tooLarge(bytes: limit + 1)) { try decoded([ping, [0, 1, 0, 1, 0x0a]]) }
        #expect(throws: FrameError.tooLarge(bytes: limit + 1)) { try decoded([ping, [0, 1, 0, 1, 0xA2, 2]]) }
        let most = DeviceProtocolLimits.operationsBytes
        #expect(try decoded([ping, [0, 4, 0, 0, 0xA2, 1]]) == [Self.ping])
        #expect(throws: FrameError.tooLarge(bytes: most + 1)) { try decoded([ping, [0, 4, 0, 1, 0xA2, 1]]) }
        let large = Mss_Device_V1_Packet.with {
            $0.submitOperations.number = 1
            $0.submitOperations.operations = [.with { $0.body = Data(repeating: 7, count: 3 * limit) }]
        }
        #expect(try decoded([ping] + bytes(of: large).map { [$0] }) == [Self.ping, large])
        // A frame of exactly the limit is permitted; the decoder waits for its data.
        #expect(try decoded([[0, 1, 0, 0]]) == [])
    }

    @Test func whatIsNoPacketFails() {
        for garbage in ["00000001 ff", "00000002 62 05", "00000003 62 01 08", "00000005 0affffffff"] {
            #expect(throws: FrameError.malformed, "\(garbage)") { try decoded([unhex(garbage)]) }
        }
    }

    @Test func messagesNestUpToAHundredDeep() throws {
        // Packet and SubmitOperations are two of them.
        func frame(operations: Int) -> [UInt8] {
            var operation = Mss_Device_V1_DeviceOperation()
            for _ in 1..<operations { operation = .with { $0.children = [operation] } }
            return bytes(of: .with { $0.submitOperations.operations = [operation] })
        }
        #expect(try decoded([frame(operations: 98)]).count == 1)
        #expect(throws: FrameError.malformed) { try decoded([frame(operations: 99)]) }
    }

    @Test func bodiesOfLaterVersionsAreKnownAsNoBody() throws {
        // Field 99, one byte.
        let packets = try decoded([unhex("00000004 9a06 01 00") + bytes(of: Self.ping)])
        #expect(packets.count == 2)
        #expect(packets.first?.body == nil)
        #expect(packets.last == Self.ping)
    }

    @Test func randomBytesNeverTrap() {
        for seed in 0..<2_000 {
            var generator = SeededGenerator(seed: UInt64(seed))
            let length = Int.random(in: 0..<200, using: &generator)
            var garbage: [UInt8] = [0, 0, 0, UInt8(length)]
            garbage += (0..<length).map { _ in .random(in: 0...255, using: &generator) }
            do {
                #expect(try decoded([garbage]).count == 1, "seed \(seed)")
            } catch {
                #expect(error as? FrameError == .malformed, "seed \(seed)")
            }
        }
    }

    @Test func codesOfEveryGroupAreObeyedEvenWhenUnknown() {
        #expect(CloseCode.Group(code: 1_234) == .reconnectNow)
        #expect(CloseCode.Group(code: 2_999) == .reconnectLater)
        #expect(CloseCode.Group(code: 3_000) == .reconnectElsewhere)
        #expect(CloseCode.Group(code: 4_000) == .signInAgain)
        #expect(CloseCode.Group(code: 5_002) == .stayAway)
        for code: UInt32 in [0, 999, 6_000, .max] { #expect(CloseCode.Group(code: code) == .reconnectLater) }
    }

    private func bytes(of packet: Mss_Device_V1_Packet) -> [UInt8] {
        var buffer = ByteBuffer()
        PacketEncoder.encode(packet, into: &buffer)
        return Array(buffer.readableBytesView)
    }

    /// Decodes these pieces in order with the gateway's decoder.
    private func decoded(_ pieces: [[UInt8]]) throws -> [Mss_Device_V1_Packet] {
        var decoder = PacketDecoder.ofDevice
        var buffer = ByteBuffer()
        var packets: [Mss_Device_V1_Packet] = []
        for piece in pieces {
            buffer.writeBytes(piece)
            while let packet = try decoder.decode(buffer: &buffer) { packets.append(packet) }
        }
        return packets
    }

    private func unhex(_ text: String) -> [UInt8] {
        let digits = text.filter(\.isHexDigit)
        return stride(from: 0, to: digits.count, by: 2).compactMap { offset in
            UInt8(digits.dropFirst(offset).prefix(2), radix: 16)
        }
    }

    /// The bytes of the example after a line with this start: the columns before the explanation.
    private func exampleInText(after start: String) throws -> String {
        let file = ProjectFolder.url.appending(path: "Shared/Device/DeviceProtocol/DeviceProtocol.md")
        let lines = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
        let first = try #require(lines.firstIndex { $0.hasPrefix(start) })
        let block = lines[first...].drop { !$0.hasPrefix("```") }.dropFirst().prefix { !$0.hasPrefix("```") }
        return block.map { String($0.prefix(30)) }.joined()
    }
}
