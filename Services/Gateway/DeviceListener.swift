import DeviceProtocol
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import ServiceKit
import ServiceLifecycle
import Synchronization

/// Accepts connections over TLS, of devices and of browsers.
struct DeviceListener: Service {
    let host: String
    let port: Int
    let certificateFile: String
    let privateKeyFile: String
    /// Whether browsers get files.
    let servesFiles: Bool
    let core: GatewayCore
    let health: HealthState

    /// How long devices are given to read why they are closed.
    private static let drainLimit = Duration.seconds(2)

    func run() async throws {
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(certificateFile).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: privateKeyFile, format: .pem)))
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = [DeviceProtocolLimits.applicationProtocol, TransportChoice.httpName]
        let tls = try NIOSSLContext(configuration: configuration)
        // Before the control data is here every instance is unknown, and a device that hears that stays away for good.
        while !core.isLoaded {
            try await cancelWhenGracefulShutdown { try await Task.sleep(for: .milliseconds(20)) }
            if Task.isShuttingDownGracefully { return }
        }
        let group = MultiThreadedEventLoopGroup.singleton
        let (core, servesFiles) = (core, servesFiles)
        let numbers = SessionNumbers()
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 4_096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let arrival = Arrival(
                        core: core, number: numbers.next(), acceptedAt: .now, servesFiles: servesFiles)
                    try arrival.begin(channel, tls: tls)
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
