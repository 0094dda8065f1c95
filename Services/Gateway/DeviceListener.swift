import DeviceProtocol
import Logging
import NIOCore
import NIOPosix
import ServerTLS
import ServiceKit
import ServiceLifecycle

/// Accepts connections over TLS, of devices and of browsers.
struct DeviceListener: Service {
    let host: String
    let port: Int
    let certificates: ServerCertificates
    /// Whether browsers get files.
    let servesFiles: Bool
    /// Whether MQTT clients are devices.
    let takesMQTT: Bool
    let core: GatewayCore
    let health: HealthState

    /// How long devices are given to read why they are closed.
    private static let drainLimit = Duration.seconds(2)

    /// As the settings have it.
    ///
    /// - Throws: the certificate's files are not usable.
    init(_ context: ServiceContext, core: GatewayCore) throws(ServerTLSError) {
        let settings = context.settings
        host = settings[GatewaySettings.host]
        port = settings[GatewaySettings.port]
        takesMQTT = settings[GatewaySettings.mqtt] == "on"
        let protocols =
            [DeviceProtocolLimits.applicationProtocol, TransportChoice.httpName]
            + (takesMQTT ? [MQTTBridge.applicationProtocol] : [])
        certificates = try ServerCertificates(
            GatewaySettings.files(settings), applicationProtocols: protocols, logger: context.logger)
        servesFiles = settings[GatewaySettings.web] == "on"
        self.core = core
        health = context.health
    }

    func run() async throws {
        // Before the control data is here every instance is unknown, and a device that hears that stays away for good.
        while !core.isLoaded {
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: .milliseconds(20)) }
            if Task.isShuttingDownGracefully || Task.isCancelled { return }
        }
        let group = MultiThreadedEventLoopGroup.singleton
        let (core, servesFiles, takesMQTT, certificates) = (core, servesFiles, takesMQTT, certificates)
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 4_096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            // A connection keeps its read buffer, and devices send little: one that sends more gets a larger one.
            .childChannelOption(
                .recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 256, initial: 512, maximum: 65_536)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try Arrival.accept(
                        channel, core: core, servesFiles: servesFiles, takesMQTT: takesMQTT, tls: certificates.context)
                }
            }
            .bind(host: host, port: port).get()
        health.set("listener", isReady: true)
        try? await gracefulShutdown()
        try? await channel.close()
        core.tell(core.registry.all, .drained)
        let deadline = ContinuousClock.now + Self.drainLimit
        while core.registry.count > 0, .now < deadline { try await Task.sleep(for: .milliseconds(20)) }
    }
}
