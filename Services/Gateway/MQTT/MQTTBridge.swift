import DeviceProtocol
import MQTT
import NIOCore
import SyncModel

/// Between an MQTT client and the handler of a device's connection, whose frames it translates.
final class MQTTBridge: ChannelDuplexHandler, DeviceTransport {
    typealias InboundIn = MQTTClientPacket
    typealias InboundOut = Mss_Device_V1_Packet
    /// Whole frames, several at a time.
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// MQTT's name in the TLS handshake.
    static let applicationProtocol = "mqtt"

    private var session = MQTTSession()
    private let now: () -> WallTime
    private var context: ChannelHandlerContext?
    /// The session was told that there is room, and has not used all of it since.
    private var hasToldRoom = false

    /// - Parameter now: the database's time.
    init(now: @escaping () -> WallTime) { self.now = now }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    var room: Int { session.room }

    func wants(_ bizType: String) -> Bool { session.wants(bizType) }

    func suspend(_ bizTypes: Set<String>) {
        guard let context else { return }
        performLater(session.suspend(bizTypes), context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        perform(session.received(Self.unwrapInboundIn(data), at: now()), context)
        tellRoom(context)
    }

    private func tellRoom(_ context: ChannelHandlerContext) {
        let hasRoom = session.room > 0
        defer { hasToldRoom = hasRoom }
        if hasRoom, !hasToldRoom { context.fireUserInboundEventTriggered(TransportRoom()) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let fault = error as? MQTTFault else { return context.fireErrorCaught(error) }
        perform(session.received(fault), context)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        var bytes = Self.unwrapOutboundIn(data)
        var decoder = PacketDecoder(maxBytes: DeviceProtocolLimits.toDeviceBytes)
        var outputs: [MQTTSession.Output] = []
        // They are this gateway's own.
        while let packet = try? decoder.decode(buffer: &bytes) { outputs += session.received(packet, at: now()) }
        perform(outputs.filter { !$0.isToGateway }, context, promise)
        performLater(outputs.filter(\.isToGateway), context)
        if session.room == 0 { hasToldRoom = false }
    }

    /// Performs outputs after the write that the session's handler is in the middle of.
    private func performLater(_ outputs: [MQTTSession.Output], _ context: ChannelHandlerContext) {
        guard !outputs.isEmpty else { return }
        let bound = NIOLoopBound((bridge: self, context: context), eventLoop: context.eventLoop)
        context.eventLoop.execute {
            guard bound.value.context.channel.isActive else { return }
            bound.value.bridge.perform(outputs, bound.value.context)
            bound.value.bridge.tellRoom(bound.value.context)
        }
    }

    /// - Parameter promise: of a write that led to this.
    private func perform(
        _ outputs: [MQTTSession.Output], _ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>? = nil
    ) {
        let encoder = MQTTEncoder(version: session.version, maxBytes: MQTTSession.packetBytesMax)
        var bytes = ByteBuffer()
        var ends = false
        var frames: [Mss_Device_V1_Packet] = []
        for output in outputs {
            switch output {
            case .toClient(let packet): encoder.encode(packet, into: &bytes)
            case .toGateway(let packet): frames.append(packet)
            case .close: ends = true
            }
        }
        if bytes.readableBytes > 0 || promise != nil {
            context.writeAndFlush(Self.wrapOutboundOut(bytes), promise: promise)
        }
        for frame in frames { context.fireChannelRead(Self.wrapInboundOut(frame)) }
        if ends { context.close(promise: nil) }
    }
}
