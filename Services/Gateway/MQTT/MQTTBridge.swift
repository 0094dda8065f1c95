import DeviceProtocol
import MQTT
import NIOCore
import SyncModel

/// Translates between an MQTT client and the handler of a device connection.
final class MQTTBridge: ChannelDuplexHandler, DeviceTransport {
    typealias InboundIn = MQTTClientPacket
    typealias InboundOut = Mss_Device_V1_Packet
    /// One or more complete frames.
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The protocol name of MQTT in the TLS handshake.
    static let applicationProtocol = "mqtt"

    private var session = MQTTSession()
    private let now: () -> WallTime
    private var context: ChannelHandlerContext?
    /// `TransportCapacityEvent` was sent, and the client has had free capacity since.
    private var hasNotifiedRoom = false

    /// - Parameter now: the database time.
    init(now: @escaping () -> WallTime) { self.now = now }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    var room: Int { session.room }

    func accepts(_ bizType: String) -> Bool { session.accepts(bizType) }

    func suspend(_ bizTypes: Set<String>) {
        guard let context else { return }
        performLater(session.suspend(bizTypes), context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        perform(session.received(Self.unwrapInboundIn(data), at: now()), context)
        notifyRoom(context)
    }

    private func notifyRoom(_ context: ChannelHandlerContext) {
        let hasRoom = session.room > 0
        defer { hasNotifiedRoom = hasRoom }
        if hasRoom, !hasNotifiedRoom { context.fireUserInboundEventTriggered(TransportCapacityEvent()) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let fault = error as? MQTTFault else { return context.fireErrorCaught(error) }
        perform(session.received(fault), context)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        var bytes = Self.unwrapOutboundIn(data)
        var decoder = PacketDecoder(maxBytes: DeviceProtocolLimits.toDeviceBytes)
        var outputs: [MQTTSession.Output] = []
        // The gateway encoded these frames itself, so they can be decoded.
        while let packet = try? decoder.decode(buffer: &bytes) { outputs += session.received(packet, at: now()) }
        perform(outputs.filter { !$0.isToGateway }, context, promise)
        performLater(outputs.filter(\.isToGateway), context)
        if session.room == 0 { hasNotifiedRoom = false }
    }

    /// Performs outputs after the current write of the session's handler.
    private func performLater(_ outputs: [MQTTSession.Output], _ context: ChannelHandlerContext) {
        guard !outputs.isEmpty else { return }
        let bound = NIOLoopBound((bridge: self, context: context), eventLoop: context.eventLoop)
        context.eventLoop.execute {
            guard bound.value.context.channel.isActive else { return }
            bound.value.bridge.perform(outputs, bound.value.context)
            bound.value.bridge.notifyRoom(bound.value.context)
        }
    }

    /// - Parameter promise: the promise of the write that caused the outputs.
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
