import DeviceProtocol
import Logging
import NIOCore
import NIOPosix
import ServerTLS
import ServiceKit
import ServiceLifecycle

/// Accepts connections of devices and browsers over TLS.
struct DeviceListener: Service {
    let host: String
    let port: Int
    let certificates: ServerCertificates
    /// Whether the port serves files to browsers.
    let servesFiles: Bool
    /// Whether the gateway accepts MQTT clients.
    let acceptsMQTT: Bool
    let runtime: GatewayRuntime
    let health: HealthState

    /// Time for devices to read the reason of the close.
    private static let drainLimit = Duration.seconds(2)

    /// Makes the listener from the settings.
    ///
    /// - Throws: the certificate's files are not usable.
    init(_ context: ServiceContext, runtime: GatewayRuntime) throws(ServerTLSError) {
        let settings = context.settings
        host = settings[GatewaySettings.host]
        port = settings[GatewaySettings.port]
        acceptsMQTT = settings[GatewaySettings.mqtt] == "on"
        let protocols =
            [DeviceProtocolLimits.applicationProtocol, TransportChoice.httpName]
            + (acceptsMQTT ? [MQTTBridge.applicationProtocol] : [])
        certificates = try ServerCertificates(
            GatewaySettings.files(settings), applicationProtocols: protocols, logger: context.logger)
        servesFiles = settings[GatewaySettings.web] == "on"
        self.runtime = runtime
        health = context.health
    }

    func run() async throws {
        // Without control data every instance is unknown, and a device that receives this answer does not reconnect.
        while !runtime.isLoaded {
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: .milliseconds(20)) }
            if Task.isShuttingDownGracefully || Task.isCancelled { return }
        }
        let group = MultiThreadedEventLoopGroup.singleton
        let (runtime, servesFiles, acceptsMQTT, certificates) = (runtime, servesFiles, acceptsMQTT, certificates)
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 4_096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            // A connection keeps its read buffer, and most devices send little. The buffer grows for one that sends
            // more.
            .childChannelOption(
                .recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 256, initial: 512, maximum: 65_536)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try AcceptedConnection.accept(
                        channel, runtime: runtime, servesFiles: servesFiles, acceptsMQTT: acceptsMQTT,
                        tls: certificates.context)
                }
            }
            .bind(host: host, port: port).get()
        health.set("listener", isReady: true)
        try? await gracefulShutdown()
        try? await channel.close()
        runtime.notify(runtime.registry.all, .drained)
        let deadline = ContinuousClock.now + Self.drainLimit
        while runtime.registry.count > 0, .now < deadline { try await Task.sleep(for: .milliseconds(20)) }
    }
}
