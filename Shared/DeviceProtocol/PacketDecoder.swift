package import NIOCore
import SwiftProtobuf

/// Cuts a stream of bytes into packets (DeviceProtocol.md, Framing).
package struct PacketDecoder: NIOSingleStepByteToMessageDecoder {
    package typealias InboundOut = Mss_Device_V1_Packet

    private let maxBytes: Int

    /// - Parameter maxBytes: the largest message taken; a longer one fails before it is read.
    package init(maxBytes: Int) { self.maxBytes = maxBytes }

    /// The next packet, or nil until more bytes have come.
    ///
    /// - Throws: `FrameError`; nothing more can be read then.
    package mutating func decode(buffer: inout ByteBuffer) throws -> Mss_Device_V1_Packet? {
        guard let length = buffer.getInteger(at: buffer.readerIndex, as: UInt32.self) else { return nil }
        guard length <= maxBytes else { throw FrameError.tooLarge(bytes: Int(length)) }
        guard buffer.readableBytes >= 4 + Int(length) else { return nil }
        buffer.moveReaderIndex(forwardBy: 4)
        guard let bytes = buffer.readBytes(length: Int(length)) else { return nil }
        do {
            return try Mss_Device_V1_Packet(serializedBytes: bytes)
        } catch {
            throw FrameError.malformed
        }
    }

    /// The end of the stream; a frame that was cut off is dropped, its sender will repeat it.
    package mutating func decodeLast(buffer: inout ByteBuffer, seenEOF: Bool) throws -> Mss_Device_V1_Packet? {
        try decode(buffer: &buffer)
    }
}
