import Hummingbird
import Logging
import NIOCore
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
        let (limits, metrics, logger, certificates) = (limits, responder.metrics, responder.logger, certificates)
        let sources = SourceConnections(maximum: limits.sourceConnections)
        let application = Application(
            responder: responder,
            server: .http1(
                configuration: .init(
                    additionalChannelHandlers: [
                        GuardInstaller(
                            limits: limits, server: IngestGuarding(metrics: metrics), sources: sources,
                            tls: certificates?.context)
                    ], idleTimeout: nil,
                    httpDecoderConfiguration: .init(
                        maxHeaderFieldSize: limits.headBytes, maxHeaderListSize: limits.headBytes,
                        maxHeaderFieldCount: limits.headerFields))),
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port), backlog: 1_024,
                availableConnectionsDelegate: .maximum(limits.connections, logger: logger)),
            onServerRunning: { channel in await onListening(channel.localAddress?.port ?? port) },
            logger: logger)
        try await application.run()
    }
}
