package import NIOCore
import SwiftProtobuf

/// Writes packets as frames (DeviceProtocol.md, Framing).
package enum PacketEncoder {
    /// Appends one frame.
    package static func encode(_ packet: Mss_Device_V1_Packet, into buffer: inout ByteBuffer) {
        // Serializing fails only for proto2 required fields and messages over 2 GiB, which there are none of.
        let bytes: [UInt8] = (try? packet.serializedBytes()) ?? []
        buffer.reserveCapacity(minimumWritableBytes: 4 + bytes.count)
        buffer.writeInteger(UInt32(bytes.count))
        buffer.writeBytes(bytes)
    }
}
