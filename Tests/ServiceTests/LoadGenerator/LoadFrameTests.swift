import DeliveryHistory
import DeviceProtocol
import NIOCore
import SwiftProtobuf
import TestSupport
import Testing

@testable import LoadGenerator

@Suite("A load run's frames are those of DeviceProtocol.md") struct LoadFrameTests {
    private struct Seen: Hashable {
        var batches: [String] = []
        var entries: [String] = []
    }

    private func scan(_ packet: Mss_Device_V1_Packet) throws -> (ScannedFrame?, Seen) {
        let bytes: [UInt8] = try packet.serializedBytes()
        return bytes.withUnsafeBytes { bytes in
            var seen = Seen()
            let frame = ScannedFrame(bytes)
            guard case .push(let push)? = frame else { return (frame, seen) }
            let isWhole = ScannedBatch.each(bytes, in: push) { batch in
                let name = String(decoding: bytes[batch.bizType], as: UTF8.self)
                seen.batches.append("\(batch.kind) \(name) \(batch.bindNumber) \(batch.after) \(batch.upto)")
                let isWhole = batch.eachEntry(bytes) { id, payload in
                    seen.entries.append("\(id) \(String(decoding: bytes[payload], as: UTF8.self))")
                }
                #expect(isWhole)
            }
            #expect(isWhole)
            return (frame, seen)
        }
    }

    private func push(_ random: inout SeededGenerator) -> Mss_Device_V1_Packet {
        .with {
            $0.push.batches = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                .with {
                    $0.kind = .allCases.randomElement(using: &random) ?? .user
                    $0.bizType = ["UCHAT", "", "Ä"].randomElement(using: &random) ?? ""
                    $0.bindNumber = UInt32.random(in: 0...300, using: &random)
                    $0.after = Int64.random(in: 0...(1 << 40), using: &random)
                    $0.upto = Int64.random(in: 0...Int64.max, using: &random)
                    $0.entries = (0..<Int.random(in: 0...4, using: &random)).map { index in
                        .with {
                            $0.oplogID = Int64.random(in: 0...(1 << 50), using: &random)
                            $0.payload = .init(String(repeating: "p", count: index * 60).utf8)
                            $0.thirdMessageID = "t"
                            $0.validUntilMs = Int64.random(in: 0...(1 << 45), using: &random)
                        }
                    }
                }
            }
        }
    }

    @Test("the scanner finds the same data in a push as a decoder", arguments: 1...100) func pushes(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let packet = push(&random)
        let (_, seen) = try scan(packet)
        let expected = packet.push.batches.map {
            "\($0.kind.rawValue) \($0.bizType) \($0.bindNumber) \($0.after) \($0.upto)"
        }
        #expect(seen.batches == expected, "seed \(seed)")
        let entries = packet.push.batches.flatMap(\.entries)
        #expect(seen.entries == entries.map { "\($0.oplogID) \(String(decoding: $0.payload, as: UTF8.self))" })
    }

    @Test("the scanner finds the same data in other frames") func others() throws {
        #expect(try scan(.with { $0.caughtUp.bindNumber = 3 }).0 == .caughtUp)
        #expect(try scan(.with { $0.confirmRecorded.reportID = 1 << 40 }).0 == .recorded(reportID: 1 << 40))
        #expect(try scan(.with { $0.ping.number = 7 }).0 == .ping(number: 7))
        #expect(try scan(.with { $0.connected.heartbeatSeconds = 60 }).0 == .connected(heartbeatSeconds: 60))
        let close = Mss_Device_V1_Packet.with {
            $0.close.code = 2_001
            $0.close.reason = "later"
            $0.close.retryAfterMs = 500
        }
        #expect(try scan(close).0 == .close(code: 2_001, retryAfterMilliseconds: 500))
        #expect(try scan(.with { $0.pong.number = 7 }).0 == .other)
        #expect(try scan(Mss_Device_V1_Packet()).0 == .other)
    }

    @Test("malformed bytes are no frame, and nothing is read beyond them", arguments: 1...200) func malformed(seed: Int)
        throws
    {
        let bad: [[UInt8]] = [[0x2a, 0x05, 1], [0x2a], [0x00], [0x2b], [0x80, 0x80], [0x0d, 1]]
        for bytes in bad { #expect(bytes.withUnsafeBytes { ScannedFrame($0) } == nil, "\(bytes)") }
        var random = SeededGenerator(seed: UInt64(seed))
        var bytes: [UInt8] = try push(&random).serializedBytes()
        for _ in 0..<3 where !bytes.isEmpty {
            bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        // Every found range must lie within the bytes; otherwise reading traps.
        bytes.withUnsafeBytes { bytes in
            guard case .push(let push)? = ScannedFrame(bytes) else { return }
            _ = ScannedBatch.each(bytes, in: push) { batch in
                _ = bytes[batch.bizType]
                _ = batch.eachEntry(bytes) { _, payload in _ = bytes[payload] }
            }
        }
    }

    @Test("a stream that is cut anywhere gives the same frames", arguments: 1...50) func splits(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var whole = ByteBuffer()
        var expected: [[UInt8]] = []
        for _ in 0..<5 {
            let packet = push(&random)
            expected.append(try packet.serializedBytes())
            PacketEncoder.encode(packet, into: &whole)
        }
        var stream = FrameStream()
        var found: [[UInt8]] = []
        while whole.readableBytes > 0 {
            let cut = whole.readSlice(length: Int.random(in: 1...min(90, whole.readableBytes), using: &random))
            let part = try #require(cut)
            try stream.append(part) { found.append(Array($0)) }
        }
        #expect(found == expected, "seed \(seed)")
    }

    @Test("a frame above the limit ends the stream") func tooLarge() {
        var stream = FrameStream()
        let limit = DeviceProtocolLimits.toDeviceBytes
        #expect(throws: FrameError.tooLarge(bytes: limit + 1)) {
            try stream.append(ByteBuffer(integer: UInt32(limit + 1))) { _ in }
        }
    }

    // MARK: To the gateway

    private func packets(_ buffer: ByteBuffer) throws -> [Mss_Device_V1_Packet] {
        var (buffer, decoder) = (buffer, PacketDecoder(maxBytes: DeviceProtocolLimits.toGatewayBytes))
        var packets: [Mss_Device_V1_Packet] = []
        while let packet = try decoder.decode(buffer: &buffer) { packets.append(packet) }
        #expect(buffer.readableBytes == 0)
        return packets
    }

    @Test("a decoder reads acknowledgements and reports correctly", arguments: 1...50) func acks(
        seed: Int
    ) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var channels = (0..<3).map { kind in
            var channel = DeviceChannel(kind: UInt64(kind), bizType: Array("TYPE-\(kind)".utf8))
            channel.bindNumber = UInt64.random(in: 0...300, using: &random)
            channel.position = Int64.random(in: 0...(1 << 45), using: &random)
            channel.isUnacknowledged = Bool.random(using: &random)
            channel.unreported = (0..<Int.random(in: 0...40, using: &random)).map { Int64($0 * 1_000 + kind) }
            return channel
        }
        let before = channels
        var buffer = ByteBuffer()
        AckFrames.writeStored(&channels, into: &buffer)
        let stored = try packets(buffer).first?.storedAck.channels ?? []
        let moved = before.filter(\.isUnacknowledged)
        #expect(
            stored.map(\.upto) == moved.map(\.position) && stored.map(\.kind.rawValue) == moved.map { Int($0.kind) })
        #expect(stored.map(\.bizType) == moved.map { String(decoding: $0.bizType, as: UTF8.self) })
        #expect(stored.map(\.bindNumber) == moved.map { UInt32($0.bindNumber) }, "seed \(seed)")
        let left = channels.filter(\.isUnacknowledged)
        #expect(left.isEmpty)
        buffer.clear()
        let isWritten = AckFrames.writeReport(300, &channels, into: &buffer)
        let unreported = before.filter { !$0.unreported.isEmpty }
        #expect(isWritten == !unreported.isEmpty)
        let report = try packets(buffer).first?.confirmReport
        #expect((report?.channels ?? []).map(\.oplogIds) == unreported.map(\.unreported), "seed \(seed)")
        #expect(report == nil || report?.reportID == 300)
    }

    @Test("a report fits into a frame; the rest waits") func longReport() throws {
        var channel = DeviceChannel(kind: 0, bizType: Array("UCHAT".utf8))
        channel.unreported = (0..<5_000).map { Int64.max - 5_000 + $0 }
        var (channels, buffer) = ([channel], ByteBuffer())
        #expect(AckFrames.writeReport(1, &channels, into: &buffer))
        #expect(buffer.readableBytes < DeviceProtocolLimits.toGatewayBytes)
        #expect(try packets(buffer)[0].confirmReport.channels[0].oplogIds.count == AckFrames.reportMax)
        #expect(channels[0].unreported.count == 1_000 && channels[0].reporting.count == AckFrames.reportMax)
    }

    @Test("pings and their answers") func pings() throws {
        var buffer = ByteBuffer()
        AckFrames.writePing(5, isAnswer: false, into: &buffer)
        AckFrames.writePing(900, isAnswer: true, into: &buffer)
        #expect(try packets(buffer).map(\.body) == [.ping(.with { $0.number = 5 }), .pong(.with { $0.number = 900 })])
    }
}
