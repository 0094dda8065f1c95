import DeviceProtocol
import MQTT
import NIOCore
import NIOHTTP1
import NIOSSL
import NIOWebSocket
import ServerTLS
import ServiceKit

/// A new connection, and the set-up of its pipeline.
struct AcceptedConnection: Sendable {
    let runtime: GatewayRuntime
    /// Unique in this process.
    let number: UInt64
    let acceptedAt: ContinuousClock.Instant
    /// Whether the port serves files to browsers.
    let servesFiles: Bool
    /// Whether the gateway accepts MQTT clients.
    let acceptsMQTT: Bool

    /// Maximum size of a WebSocket frame from a device: the largest frame of the device protocol in one piece.
    static let webSocketFrameBytes = DeviceProtocolLimits.toGatewayBytes + 4

    /// Limits of a request's head and its fields (SEC4).
    static var httpLimits: NIOHTTPDecoderLimitConfiguration {
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = 16_384
        limits.maxHeaderListSize = 16_384
        limits.maxHeaderFieldCount = 100
        return limits
    }

    /// Starts a connection. If a rate is used up, it throws, and the caller closes the connection before TLS (SEC2).
    /// For a connection through a balancer, the balancer sends the source first.
    static func accept(
        _ channel: any Channel, runtime: GatewayRuntime, servesFiles: Bool, acceptsMQTT: Bool, tls: NIOSSLContext
    ) throws {
        let arrival = AcceptedConnection(
            runtime: runtime, number: runtime.admission.number(), acceptedAt: .now, servesFiles: servesFiles,
            acceptsMQTT: acceptsMQTT)
        let peer = SourceAddress(channel.remoteAddress)
        if runtime.admission.isTrustedProxy(channel.remoteAddress) {
            let header = ProxyHeaderHandler { runtime.admission.admit(arrival.number, channel, from: $0 ?? peer) }
            try channel.pipeline.syncOperations.addHandler(header)
        } else if !runtime.admission.admit(arrival.number, channel, from: peer) {
            throw ChannelError.inputClosed
        }
        try arrival.begin(channel, tls: tls)
    }

    /// Starts TLS. The other handlers follow when the transport is known.
    private func begin(_ channel: any Channel, tls: NIOSSLContext) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(NIOSSLServerHandler(context: tls))
        try pipeline.addHandler(
            TransportChoice(acceptsMQTT: acceptsMQTT) { [self] transport, pipeline in
                switch transport {
                case .plain: try addDevice(pipeline)
                case .http: try addHTTP(pipeline)
                case .mqtt: try addMQTT(pipeline)
                }
            })
        closeUnlessDevice(channel)
    }

    /// Closes a connection that has not become a device connection in time. Afterwards the session checks the deadline
    /// (SEC2).
    private func closeUnlessDevice(_ channel: any Channel) {
        let limit = TimeAmount(runtime.limits.connectDeadline)
        _ = channel.eventLoop.assumeIsolated().scheduleTask(in: limit) {
            guard (try? channel.pipeline.syncOperations.context(handlerType: DeviceHandler.self)) == nil else { return }
            channel.pipeline.syncOperations.closePastTLS()
        }
    }

    private func addDevice(_ pipeline: ChannelPipeline.SynchronousOperations) throws {
        try pipeline.addHandler(ByteToMessageHandler(PacketDecoder.ofDevice))
        try addSession(pipeline)
    }

    private func addMQTT(_ pipeline: ChannelPipeline.SynchronousOperations) throws {
        try pipeline.addHandler(ByteToMessageHandler(MQTTDecoder(maxBytes: MQTTSession.packetBytesMax)))
        let bridge = MQTTBridge(now: runtime.contexts.databaseTime.current)
        try pipeline.addHandler(bridge)
        try addSession(pipeline, transport: bridge)
    }

    private func addSession(
        _ pipeline: ChannelPipeline.SynchronousOperations, transport: (any DeviceTransport)? = nil
    ) throws {
        let device = DeviceHandler(gateway: runtime, number: number, transport: transport, acceptedAt: acceptedAt)
        try pipeline.addHandler(ReadPace(admission: runtime.admission, app: { device.instanceID }))
        try pipeline.addHandler(device)
    }

    private func addHTTP(_ pipeline: ChannelPipeline.SynchronousOperations) throws {
        try Self.addHTTP(pipeline, servesFiles: servesFiles) { pipeline in try addDevice(pipeline) }
    }

    /// Adds the handlers that answer HTTP and upgrade a connection to a WebSocket.
    ///
    /// - Parameter addDevice: adds the handlers for the stream of frames within the WebSocket.
    static func addHTTP(
        _ pipeline: ChannelPipeline.SynchronousOperations, servesFiles: Bool,
        addDevice: @escaping @Sendable (ChannelPipeline.SynchronousOperations) throws -> Void
    ) throws {
        let encoder = HTTPResponseEncoder()
        let decoder = ByteToMessageHandler(
            HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: httpLimits))
        let requests = WebHandler(servesFiles: servesFiles)
        let upgrader = NIOWebSocketServerUpgrader(
            maxFrameSize: webSocketFrameBytes, automaticErrorHandling: false,
            shouldUpgrade: { channel, _ in
                channel.eventLoop.makeSucceededFuture(["Sec-WebSocket-Protocol": WebAnswer.webSocketProtocol])
            },
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(WebSocketStream())
                    try addDevice(channel.pipeline.syncOperations)
                }
            })
        try pipeline.addHandler(encoder)
        try pipeline.addHandler(decoder)
        try pipeline.addHandler(requests)
        // Only a valid WebSocket handshake reaches this handler.
        try pipeline.addHandler(
            HTTPServerUpgradeHandler(
                upgraders: [upgrader], httpEncoder: encoder, extraHTTPHandlers: [requests, decoder],
                upgradeCompletionHandler: { _ in }))
    }
}
