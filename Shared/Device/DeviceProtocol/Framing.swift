package import NIOCore
import SwiftProtobuf

/// Sizes and names that both sides of the protocol use (DeviceProtocol.md, Framing).
package enum DeviceProtocolLimits {
    /// The version of this build.
    package static let version: UInt32 = 1
    /// The protocol's name in the TLS handshake (ALPN).
    package static let applicationProtocol = "mss/1"
    /// Bytes of a message from a device; enough for the sync points of about a thousand channels.
    package static let toGatewayBytes = 64 * 1_024
    /// Bytes of a message from a device that begins with `SubmitOperations`.
    package static let operationsBytes = 256 * 1_024
    /// The first bytes of such a message: the tag of `SubmitOperations`.
    package static let operationsTag: [UInt8] = [0xA2, 0x01]
    /// Bytes of a message to a device.
    package static let toDeviceBytes = 1_024 * 1_024
    /// Bytes after which a gateway ends a push frame and begins the next.
    package static let pushFrameBytes = 64 * 1_024
}

/// Writes packets as frames (DeviceProtocol.md, Framing).
package enum PacketEncoder {
    /// Appends one frame.
    package static func encode(_ packet: Mss_Device_V1_Packet, into buffer: inout ByteBuffer) {
        // Serialization fails only for proto2 required fields and messages over 2 GiB, which do not occur.
        let bytes: [UInt8] = (try? packet.serializedBytes()) ?? []
        buffer.reserveCapacity(minimumWritableBytes: 4 + bytes.count)
        buffer.writeInteger(UInt32(bytes.count))
        buffer.writeBytes(bytes)
    }
}

/// Splits a stream of bytes into packets (DeviceProtocol.md, Framing).
package struct PacketDecoder: NIOSingleStepByteToMessageDecoder {
    package typealias InboundOut = Mss_Device_V1_Packet

    private let maxBytes: Int
    private let operationsMaxBytes: Int
    /// No frame was read yet; the first one must be a `Connect`.
    private var isFirst = true

    /// - Parameters:
    ///   - maxBytes: the largest message; a longer one fails before it is read.
    ///   - operationsMaxBytes: the largest message that begins with `SubmitOperations`, after the first frame; nil:
    ///     `maxBytes`.
    package init(maxBytes: Int, operationsMaxBytes: Int? = nil) {
        self.maxBytes = maxBytes
        self.operationsMaxBytes = operationsMaxBytes ?? maxBytes
    }

    /// The decoder of a gateway, for frames from devices.
    package static var ofDevice: PacketDecoder {
        PacketDecoder(
            maxBytes: DeviceProtocolLimits.toGatewayBytes, operationsMaxBytes: DeviceProtocolLimits.operationsBytes)
    }

    /// The next packet; nil if more bytes are needed.
    ///
    /// - Throws: `FrameError`; the decoder is not usable after it.
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

    /// Whether a message above the usual limit contains operations; false while too few bytes have arrived.
    private func holdsOperations(_ buffer: ByteBuffer, length: Int) throws -> Bool {
        guard !isFirst, length <= operationsMaxBytes else { throw FrameError.tooLarge(bytes: length) }
        let begin = buffer.readableBytesView.dropFirst(4).prefix(DeviceProtocolLimits.operationsTag.count)
        guard DeviceProtocolLimits.operationsTag.starts(with: begin) else { throw FrameError.tooLarge(bytes: length) }
        return begin.count == DeviceProtocolLimits.operationsTag.count
    }

    /// Decodes at the end of the stream. An incomplete frame is dropped; its sender repeats it.
    package mutating func decodeLast(buffer: inout ByteBuffer, seenEOF: Bool) throws -> Mss_Device_V1_Packet? {
        try decode(buffer: &buffer)
    }
}

/// Why bytes are not a frame. The connection cannot continue, because the start of the next frame is unknown.
package enum FrameError: Error, Hashable, Sendable {
    /// The length is above the receiver's limit.
    case tooLarge(bytes: Int)
    /// The bytes are not a `Packet`.
    case malformed
}
