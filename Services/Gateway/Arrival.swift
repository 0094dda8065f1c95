import DeviceProtocol
import NIOCore
import NIOHTTP1
import NIOSSL
import NIOWebSocket
import ServerTLS

/// A connection that was just accepted, and what it is made into.
struct Arrival: Sendable {
    let core: GatewayCore
    /// Unique in this process.
    let number: UInt64
    let acceptedAt: ContinuousClock.Instant
    /// Whether browsers get files.
    let servesFiles: Bool

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
    /// the error, before anything is spent on TLS (reliability SEC2).
    static func accept(
        _ channel: any Channel, core: GatewayCore, servesFiles: Bool, tls: NIOSSLContext
    ) throws {
        guard let number = core.admission.admit(channel) else { throw ChannelError.inputClosed }
        try Arrival(core: core, number: number, acceptedAt: .now, servesFiles: servesFiles).begin(channel, tls: tls)
    }

    /// Begins with TLS; the rest follows once the transport is known.
    private func begin(_ channel: any Channel, tls: NIOSSLContext) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(NIOSSLServerHandler(context: tls))
        try pipeline.addHandler(
            TransportChoice { [self] transport, pipeline in
                switch transport {
                case .plain: try addDevice(pipeline)
                case .http: try addHTTP(pipeline)
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
        try pipeline.addHandler(ByteToMessageHandler(PacketDecoder(maxBytes: DeviceProtocolLimits.toGatewayBytes)))
        let device = DeviceHandler(gateway: core, number: number, acceptedAt: acceptedAt)
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
