import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServerTLS
import ServiceKit
import ServiceLifecycle

/// The listening server of the API, bounded in connections, time and size.
struct IngestServer: Service {
    let host: String
    let port: Int
    let responder: IngestResponder
    /// Nil: plain HTTP.
    var certificates: ServerCertificates?
    var limits = ConnectionLimits()
    /// Told the port once it listens.
    var onListening: @Sendable (Int) async -> Void = { _ in }

    func run() async throws {
        let (limits, certificates) = (limits, certificates)
        let sources = SourceConnections(maximum: limits.sourceConnections)
        let guarding = IngestGuarding(metrics: responder.metrics)
        let channel = IngestChannel(responder: responder, limits: limits) {
            GuardInstaller(limits: limits, server: guarding, sources: sources, tls: certificates?.context)
        }
        let server = Server(
            childChannelSetup: channel,
            configuration: ServerConfiguration(
                address: .hostname(host, port: port), backlog: 1_024,
                availableConnectionsDelegate: .maximum(limits.connections, logger: responder.logger)),
            onServerRunning: { channel in await onListening(channel.localAddress?.port ?? port) },
            eventLoopGroup: .singletonMultiThreadedEventLoopGroup, logger: responder.logger)
        try await server.run()
    }
}
