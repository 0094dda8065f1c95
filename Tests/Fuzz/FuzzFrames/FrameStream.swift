import DeviceProtocol
import NIOCore
import SwiftProtobuf

/// One input of the fuzzer: a stream of frames in pieces, for the decoder of either side.
///
/// The first byte selects the side, and so the size limit, and the size of the pieces. A trap is a finding. libFuzzer
/// finds hangs and memory that grows.
struct FrameStream {
    private let bytes: Slice<UnsafeBufferPointer<UInt8>>
    private let pieceBytes: Int
    private let limit: Int

    init(_ input: UnsafeBufferPointer<UInt8>) {
        let control = input.first ?? 0
        limit = control < 0x80 ? DeviceProtocolLimits.toGatewayBytes : DeviceProtocolLimits.toDeviceBytes
        // 0: in one piece.
        pieceBytes = control & 0x7f == 0 ? max(input.count, 1) : Int(control & 0x7f)
        bytes = input.dropFirst()
    }

    /// Decodes the whole stream. Each decoded frame must stay equal when it is encoded and decoded again.
    func check() {
        var decoder = PacketDecoder(maxBytes: limit)
        var (rest, stream) = (bytes, ByteBuffer())
        do {
            while !rest.isEmpty {
                stream.writeBytes(rest.prefix(pieceBytes))
                rest = rest.dropFirst(pieceBytes)
                while let packet = try decoder.decode(buffer: &stream) { checkRoundTrip(packet) }
            }
            let last = try decoder.decodeLast(buffer: &stream, seenEOF: true)
            precondition(last == nil, "the decoder returned a complete frame only at the end")
        } catch {
            precondition(error is FrameError, "not a FrameError: \(error)")
        }
    }

    private func checkRoundTrip(_ packet: Mss_Device_V1_Packet) {
        var frame = ByteBuffer()
        PacketEncoder.encode(packet, into: &frame)
        var decoder = PacketDecoder(maxBytes: frame.readableBytes)
        let again = try? decoder.decode(buffer: &frame)
        precondition(again == packet && frame.readableBytes == 0, "changed by encoding: \(packet)")
    }
}
