package import NIOCore
import SwiftProtobuf

/// Cuts a stream of bytes into packets (DeviceProtocol.md, Framing).
package struct PacketDecoder: NIOSingleStepByteToMessageDecoder {
    package typealias InboundOut = Mss_Device_V1_Packet

    private let maxBytes: Int
    private let operationsMaxBytes: Int
    /// No frame has been read: a stranger's `Connect` is to come.
    private var isFirst = true

    /// - Parameters:
    ///   - maxBytes: the largest message taken; a longer one fails before it is read.
    ///   - operationsMaxBytes: the largest that begins with `SubmitOperations`, behind the first frame; nil: no other.
    package init(maxBytes: Int, operationsMaxBytes: Int? = nil) {
        self.maxBytes = maxBytes
        self.operationsMaxBytes = operationsMaxBytes ?? maxBytes
    }

    /// Of what devices send to a gateway.
    package static var ofDevice: PacketDecoder {
        PacketDecoder(
            maxBytes: DeviceProtocolLimits.toGatewayBytes, operationsMaxBytes: DeviceProtocolLimits.operationsBytes)
    }

    /// The next packet, or nil until more bytes have come.
    ///
    /// - Throws: `FrameError`; nothing more can be read then.
    package mutating func decode(buffer: inout ByteBuffer) throws -> Mss_Device_V1_Packet? {
        guard let length = buffer.getInteger(at: buffer.readerIndex, as: UInt32.self) else { return nil }
        if length > maxBytes, try !holdsOperations(buffer, length: Int(length)) { return nil }
        guard buffer.readableBytes >= 4 + Int(length) else { return nil }
        isFirst = false
        buffer.moveReaderIndex(forwardBy: 4)
        guard let bytes = buffer.readBytes(length: Int(length)) else { return nil }
        do {
            return try Mss_Device_V1_Packet(serializedBytes: bytes)
        } catch {
            throw FrameError.malformed
        }
    }

    /// Whether a message above the usual limit is one of operations; false: not enough of it has come to tell.
    private func holdsOperations(_ buffer: ByteBuffer, length: Int) throws -> Bool {
        guard !isFirst, length <= operationsMaxBytes else { throw FrameError.tooLarge(bytes: length) }
        let begin = buffer.readableBytesView.dropFirst(4).prefix(DeviceProtocolLimits.operationsTag.count)
        guard DeviceProtocolLimits.operationsTag.starts(with: begin) else { throw FrameError.tooLarge(bytes: length) }
        return begin.count == DeviceProtocolLimits.operationsTag.count
    }

    /// The end of the stream; a frame that was cut off is dropped, its sender will repeat it.
    package mutating func decodeLast(buffer: inout ByteBuffer, seenEOF: Bool) throws -> Mss_Device_V1_Packet? {
        try decode(buffer: &buffer)
    }
}
