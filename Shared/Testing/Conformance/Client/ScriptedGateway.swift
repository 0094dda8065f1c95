import DeviceProtocol
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// A TLS listener that accepts devices and sends nothing by itself.
final class ScriptedGateway: Sendable {
    let port: Int
    private let listener: any Channel
    private let accepted: Accepted

    private final class Accepted: Sendable {
        let connections = Mutex<[FrameConnection]>([])
    }

    private init(listener: any Channel, accepted: Accepted) {
        self.listener = listener
        self.accepted = accepted
        port = listener.localAddress?.port ?? 0
    }

    /// Listens on the loopback address.
    ///
    /// - Parameter port: 0 for a free port.
    static func start(
        _ authority: TestAuthority, _ certificate: TestAuthority.Certificate = .right, port: Int = 0
    ) async throws -> ScriptedGateway {
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(authority.chainFile(certificate)).map {
                .certificate($0)
            }, privateKey: .privateKey(try NIOSSLPrivateKey(file: authority.keyFile(certificate), format: .pem)))
        configuration.applicationProtocols = [DeviceProtocolLimits.applicationProtocol]
        let tls = try NIOSSLContext(configuration: configuration)
        let accepted = Accepted()
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let connection = try FrameConnection.install(
                        on: channel, tls: NIOSSLServerHandler(context: tls),
                        maxBytes: DeviceProtocolLimits.toGatewayBytes)
                    accepted.connections.withLock { $0.append(connection) }
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        return ScriptedGateway(listener: listener, accepted: accepted)
    }

    /// All accepted connections, in order.
    var connections: [FrameConnection] { accepted.connections.withLock { $0 } }

    /// Closes the listener and all connections.
    func stop() async {
        try? await listener.close()
        for connection in connections { connection.cut() }
    }
}
