import DeviceProtocol
import NIOCore

/// Cuts a stream of bytes into frames (DeviceProtocol.md, Framing); what comes whole is not copied.
struct FrameStream {
    private var rest = ByteBuffer()

    /// Takes the next bytes and gives the messages of all frames that are whole by now.
    ///
    /// - Throws: when a length is above what a device takes; nothing more can be read then.
    mutating func take(
        _ part: ByteBuffer, _ body: (UnsafeRawBufferPointer) -> Void
    ) throws(FrameError) {
        if rest.readableBytes == 0 {
            rest = part
        } else {
            var part = part
            rest.writeBuffer(&part)
        }
        var tooLarge: Int?
        let taken = rest.withUnsafeReadableBytes { bytes in
            var start = 0
            while bytes.count - start >= 4 {
                let length = Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt32.self)))
                guard length <= DeviceProtocolLimits.toDeviceBytes else {
                    tooLarge = length
                    break
                }
                guard bytes.count - start - 4 >= length else { break }
                body(UnsafeRawBufferPointer(rebasing: bytes[(start + 4)..<(start + 4 + length)]))
                start += 4 + length
            }
            return start
        }
        if let tooLarge { throw .tooLarge(bytes: tooLarge) }
        rest.moveReaderIndex(forwardBy: taken)
        if rest.readableBytes == 0 { rest = ByteBuffer() }
    }
}
