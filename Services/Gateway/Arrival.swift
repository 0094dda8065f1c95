import DeviceProtocol
import MQTT
import NIOCore
import NIOHTTP1
import NIOSSL
import NIOWebSocket
import ServerTLS
import ServiceKit

/// A connection that was just accepted, and what it is made into.
struct Arrival: Sendable {
    let core: GatewayCore
    /// Unique in this process.
    let number: UInt64
    let acceptedAt: ContinuousClock.Instant
    /// Whether browsers get files.
    let servesFiles: Bool
    /// Whether MQTT clients are devices.
    let takesMQTT: Bool

    /// Bytes of a WebSocket frame from a device: the largest frame of the protocol in one piece.
    static let webSocketFrameBytes = DeviceProtocolLimits.toGatewayBytes + 4

    /// Bytes of a request's head, and its fields (reliability SEC4).
    static var httpLimits: NIOHTTPDecoderLimitConfiguration {
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = 16_384
        limits.maxHeaderListSize = 16_384
        limits.maxHeaderFieldCount = 100
        return limits
    }

    /// Begins with a connection, unless its source or all together have used up what they may: it is closed then, by
    /// the error, before anything is spent on TLS (reliability SEC2). Of one that a balancer passes on the balancer
    /// tells the source first.
    static func accept(
        _ channel: any Channel, core: GatewayCore, servesFiles: Bool, takesMQTT: Bool, tls: NIOSSLContext
    ) throws {
        let arrival = Arrival(
            core: core, number: core.admission.number(), acceptedAt: .now, servesFiles: servesFiles,
            takesMQTT: takesMQTT)
        let peer = SourceAddress(channel.remoteAddress)
        if core.admission.isTrustedProxy(channel.remoteAddress) {
            let header = ProxyHeaderHandler { core.admission.admit(arrival.number, channel, from: $0 ?? peer) }
            try channel.pipeline.syncOperations.addHandler(header)
        } else if !core.admission.admit(arrival.number, channel, from: peer) {
            throw ChannelError.inputClosed
        }
        try arrival.begin(channel, tls: tls)
    }

    /// Begins with TLS; the rest follows once the transport is known.
    private func begin(_ channel: any Channel, tls: NIOSSLContext) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(NIOSSLServerHandler(context: tls))
        try pipeline.addHandler(
            TransportChoice(takesMQTT: takesMQTT) { [self] transport, pipeline in
                switch transport {
                case .plain: try addDevice(pipeline)
                case .http: try addHTTP(pipeline)
                case .mqtt: try addMQTT(pipeline)
                }
            })
        closeUnlessDevice(channel)
    }

    /// Ends what is no device in time; from then on the session keeps the time (reliability SEC2).
    private func closeUnlessDevice(_ channel: any Channel) {
        let patience = TimeAmount(core.limits.connectDeadline)
        _ = channel.eventLoop.assumeIsolated().scheduleTask(in: patience) {
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
        let bridge = MQTTBridge(now: core.databaseTime.current)
        try pipeline.addHandler(bridge)
        try addSession(pipeline, transport: bridge)
    }

    private func addSession(
        _ pipeline: ChannelPipeline.SynchronousOperations, transport: (any DeviceTransport)? = nil
    ) throws {
        let device = DeviceHandler(gateway: core, number: number, transport: transport, acceptedAt: acceptedAt)
        try pipeline.addHandler(ReadPace(admission: core.admission, app: { device.instanceID }))
        try pipeline.addHandler(device)
    }

    private func addHTTP(_ pipeline: ChannelPipeline.SynchronousOperations) throws {
        try Self.addHTTP(pipeline, servesFiles: servesFiles) { pipeline in try addDevice(pipeline) }
    }

    /// Adds what answers HTTP and makes a connection a WebSocket.
    ///
    /// - Parameter addDevice: adds what takes the stream of frames within the WebSocket.
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
        // Only a request that is to become a WebSocket gets as far as this.
        try pipeline.addHandler(
            HTTPServerUpgradeHandler(
                upgraders: [upgrader], httpEncoder: encoder, extraHTTPHandlers: [requests, decoder],
                upgradeCompletionHandler: { _ in }))
    }
}
