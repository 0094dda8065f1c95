import DeliveryHistory
import NIOCore
import Testing

@testable import Torture

/// The fault proxy's parser of AMQP: the ends of frames, and the frames of one delivery.
struct AMQPDeliveriesTests {
    private static func frame(_ type: UInt8, channel: UInt16, _ content: [UInt8]) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.writeInteger(type)
        buffer.writeInteger(channel)
        buffer.writeInteger(UInt32(content.count))
        buffer.writeBytes(content)
        buffer.writeInteger(UInt8(0xCE))
        return buffer
    }

    private static func delivery(channel: UInt16, bodies: [[UInt8]]) -> [ByteBuffer] {
        let size = UInt64(bodies.reduce(0) { $0 + $1.count })
        var header = ByteBuffer()
        header.writeInteger(UInt16(60))
        header.writeInteger(UInt16(0))
        header.writeInteger(size)
        header.writeInteger(UInt16(0))
        return [
            frame(1, channel: channel, [0, 60, 0, 60, 1, 2, 3]),
            frame(2, channel: channel, Array(header.readableBytesView)),
        ]
            + bodies.map { frame(3, channel: channel, $0) }
    }

    private static func joined(_ frames: [ByteBuffer]) -> ByteBuffer {
        frames.reduce(into: ByteBuffer()) { $0.writeImmutableBuffer($1) }
    }

    @Test(
        "Deliveries are found with any cut of the bytes, and every byte is passed on", arguments: [1, 2, 7, 64, 10_000])
    func cuts(size: Int) {
        let confirm = Self.frame(1, channel: 1, [0, 60, 0, 80, 0, 0, 0, 0, 0, 0, 0, 7, 0])
        let heartbeat = Self.frame(8, channel: 0, [])
        let first = Self.delivery(channel: 1, bodies: [[1, 2, 3], [4]])
        let empty = Self.delivery(channel: 2, bodies: [])
        // Frames of two channels can alternate.
        let second = Self.delivery(channel: 1, bodies: [Array(repeating: 9, count: 300)])
        let stream = Self.joined(
            [confirm, first[0], heartbeat, first[1], empty[0], first[2], empty[1], first[3]] + second)
        var deliveries = AMQPDeliveries()
        var (passed, found) = (ByteBuffer(), [ByteBuffer]())
        var rest = stream
        while rest.readableBytes > 0 {
            guard let part = rest.readSlice(length: min(size, rest.readableBytes)) else { break }
            passed.writeImmutableBuffer(deliveries.append(part) { found.append($0) })
        }
        #expect(passed == stream)
        #expect(found == [Self.joined(empty), Self.joined(first), Self.joined(second)])
    }

    @Test("Half a frame waits for its rest")
    func halfFrame() {
        var deliveries = AMQPDeliveries()
        let frame = Self.frame(8, channel: 0, [1, 2, 3])
        var bytes = frame
        let half = bytes.readSlice(length: 5) ?? ByteBuffer()
        #expect(deliveries.append(half) { _ in }.readableBytes == 0)
        #expect(deliveries.append(bytes) { _ in } == frame)
    }
}
