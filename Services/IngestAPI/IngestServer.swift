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
    /// Of plain HTTP: where it is taken from; nil: from everywhere.
    var plainNetworks: PlainHTTPNetworks?
    var limits = ConnectionLimits()
    /// Told the port once it listens.
    var onListening: @Sendable (Int) async -> Void = { _ in }

    func run() async throws {
        let (limits, certificates, plainNetworks) = (limits, certificates, plainNetworks)
        let sources = SourceConnections(maximum: limits.sourceConnections)
        let guarding = IngestGuarding(metrics: responder.metrics)
        let channel = IngestChannel(responder: responder, limits: limits) {
            GuardInstaller(
                limits: limits, server: guarding, sources: sources, tls: certificates?.context,
                plainNetworks: plainNetworks)
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
