import DeviceProtocol
import NIOCore

/// Splits a byte stream into frames (DeviceProtocol.md, Framing). A part with complete frames is not copied.
struct FrameStream {
    private var rest = ByteBuffer()

    /// Appends received bytes and passes the message of each complete frame to `body`.
    ///
    /// - Throws: `FrameError` if a length exceeds the limit of a device. The stream cannot be read further.
    mutating func append(
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
