import NIOCore

/// Splits a broker's bytes into frames and finds the frames of each delivery (AMQP 0-9-1, 2.3.5 and 4.2.6).
struct AMQPDeliveries {
    /// Length of type, channel and size before the content, then with the end octet.
    private static let headerBytes = 7
    private static let overhead = 8
    private static let methodFrame: UInt8 = 1
    private static let headerFrame: UInt8 = 2
    private static let bodyFrame: UInt8 = 3
    /// Class and method of basic.deliver.
    private static let deliver: UInt32 = 60 << 16 | 60

    /// A delivery whose content is not complete.
    private struct Open {
        var frames: ByteBuffer
        /// Remaining bytes of the content. The value is nil before the content header.
        var bytesLeft: UInt64?
    }

    private var rest = ByteBuffer()
    private var open: [UInt16: Open] = [:]

    /// Appends received bytes.
    ///
    /// - Parameter delivered: receives all frames of a delivery after its last frame.
    /// - Returns: the bytes up to the end of the last whole frame.
    mutating func append(_ part: ByteBuffer, delivered: (ByteBuffer) -> Void) -> ByteBuffer {
        rest.writeImmutableBuffer(part)
        var whole = ByteBuffer()
        while let size = rest.getInteger(at: rest.readerIndex + 3, as: UInt32.self),
            let frame = rest.readSlice(length: Int(size) + Self.overhead)
        {
            whole.writeImmutableBuffer(frame)
            process(frame, contentBytes: UInt64(size), delivered)
        }
        rest.discardReadBytes()
        return whole
    }

    private mutating func process(_ frame: ByteBuffer, contentBytes: UInt64, _ delivered: (ByteBuffer) -> Void) {
        let start = frame.readerIndex
        guard let type = frame.getInteger(at: start, as: UInt8.self),
            let channel = frame.getInteger(at: start + 1, as: UInt16.self)
        else { return }
        if type == Self.methodFrame {
            let method = frame.getInteger(at: start + Self.headerBytes, as: UInt32.self)
            open[channel] = method == Self.deliver ? Open(frames: frame) : nil
            return
        }
        guard var delivery = open.removeValue(forKey: channel) else { return }
        delivery.frames.writeImmutableBuffer(frame)
        switch type {
        case Self.headerFrame:
            // The size follows class and weight.
            delivery.bytesLeft = frame.getInteger(at: start + Self.headerBytes + 4, as: UInt64.self)
        case Self.bodyFrame: delivery.bytesLeft = delivery.bytesLeft.map { $0 - min($0, contentBytes) }
        default: break
        }
        if delivery.bytesLeft == 0 { delivered(delivery.frames) } else { open[channel] = delivery }
    }
}
