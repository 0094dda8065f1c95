import DeviceProtocol
import NIOCore
import SwiftProtobuf

/// Frames as bytes, well-formed and not (DeviceProtocol.md, Framing).
enum FrameBytes {
    /// A field number that no message of this version has.
    static let unknownField = 999

    /// The frames of these packets, one after the other.
    static func of(_ packets: [Mss_Device_V1_Packet]) -> [UInt8] {
        var buffer = ByteBuffer()
        for packet in packets { PacketEncoder.encode(packet, into: &buffer) }
        return Array(buffer.readableBytesView)
    }

    /// One frame with any content.
    static func frame(_ message: [UInt8]) -> [UInt8] { length(message.count) + message }

    /// The length prefix of a message of this many bytes.
    static func length(_ bytes: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: bytes >> (24 - 8 * $0)) } }

    /// A varint, with the lowest seven bits first.
    static func varint(_ value: UInt64) -> [UInt8] {
        var (rest, bytes) = (value, [UInt8]())
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }

    /// A field of wire type 0.
    static func field(_ number: Int, _ value: UInt64) -> [UInt8] { varint(UInt64(number) << 3) + varint(value) }

    /// A field of wire type 2.
    static func field(_ number: Int, _ bytes: [UInt8]) -> [UInt8] {
        varint(UInt64(number) << 3 | 2) + varint(UInt64(bytes.count)) + bytes
    }

    /// A text field.
    static func field(_ number: Int, _ text: String) -> [UInt8] { field(number, Array(text.utf8)) }

    /// A packet with an additional unknown field, so that the message has exactly this many bytes.
    static func padded(_ packet: Mss_Device_V1_Packet, to bytes: Int) -> [UInt8] {
        let body = Array(of([packet]).dropFirst(4))
        // The key has two bytes, the length three: enough from 16 KiB to 2 MiB.
        return frame(body + field(unknownField, [UInt8](repeating: 0x2A, count: bytes - body.count - 5)))
    }

    /// Invalid protobuf messages, by name.
    static let garbage: [(name: String, message: [UInt8])] = [
        ("noise", [UInt8](repeating: 0xFF, count: 32)),
        ("cut-off-varint", [0x62, 0x02, 0x08, 0x80]),
        ("length-beyond-the-end", [0x62, 0x7F, 0x08, 0x07]),
        ("field-number-0", [0x02, 0x00]),
        ("wire-type-7", [0x67, 0x00]),
        ("varint-of-11-bytes", [UInt8](repeating: 0x80, count: 10) + [0x01, 0x00]),
    ]
}
