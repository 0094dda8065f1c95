import DeviceProtocol
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import ServiceKit
import ServiceLifecycle
import Synchronization

/// Accepts devices over TLS and gives each a handler.
struct DeviceListener: Service {
    let host: String
    let port: Int
    let certificateFile: String
    let privateKeyFile: String
    let core: GatewayCore
    let health: HealthState

    /// How long devices are given to read why they are closed.
    private static let drainLimit = Duration.seconds(2)

    func run() async throws {
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(certificateFile).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: privateKeyFile, format: .pem)))
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = [DeviceProtocolLimits.applicationProtocol]
        let tls = try NIOSSLContext(configuration: configuration)
        // Before the control data is here every instance is unknown, and a device that hears that stays away for good.
        while !core.isLoaded {
            try await cancelWhenGracefulShutdown { try await Task.sleep(for: .milliseconds(20)) }
            if Task.isShuttingDownGracefully { return }
        }
        let group = MultiThreadedEventLoopGroup.singleton
        let core = core
        let numbers = SessionNumbers()
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 4_096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLServerHandler(context: tls))
                    try pipeline.addHandler(
                        ByteToMessageHandler(PacketDecoder(maxBytes: DeviceProtocolLimits.toGatewayBytes)))
                    try pipeline.addHandler(DeviceHandler(gateway: core, number: numbers.next()))
                }
            }
            .bind(host: host, port: port).get()
        health.set("listener", isReady: true)
        try? await gracefulShutdown()
        try? await channel.close()
        core.tell(core.registry.all) { machine, _ in machine.drained() }
        let deadline = ContinuousClock.now + Self.drainLimit
        while core.registry.count > 0, .now < deadline { try await Task.sleep(for: .milliseconds(20)) }
    }
}

/// Numbers sessions of this process.
private final class SessionNumbers: Sendable {
    private let last = Atomic<UInt64>(0)
    func next() -> UInt64 { last.add(1, ordering: .relaxed).newValue }
}
