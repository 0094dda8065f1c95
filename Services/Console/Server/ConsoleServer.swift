import Hummingbird
import Logging
import NIOCore
import ServerTLS
import ServiceKit
import ServiceLifecycle

/// The listening server of the console, bounded in connections, time and size.
struct ConsoleServer: Service {
    let host: String
    let port: Int
    let responder: ConsoleResponder
    /// Nil: plain HTTP.
    var certificates: ServerCertificates?
    var limits = ConnectionLimits.console
    /// Told the port once it listens.
    var onListening: @Sendable (Int) async -> Void = { _ in }

    func run() async throws {
        let (limits, logger, certificates) = (limits, responder.logger, certificates)
        let sources = SourceConnections(maximum: limits.sourceConnections)
        let application = Application(
            responder: responder,
            server: .http1(
                configuration: .init(
                    additionalChannelHandlers: [
                        GuardInstaller(
                            limits: limits, server: ConsoleGuarding(logger: logger), sources: sources,
                            tls: certificates?.context)
                    ], idleTimeout: nil,
                    httpDecoderConfiguration: .init(
                        maxHeaderFieldSize: limits.headBytes, maxHeaderListSize: limits.headBytes,
                        maxHeaderFieldCount: limits.headerFields))),
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port), serverName: nil, backlog: 256,
                availableConnectionsDelegate: .maximum(limits.connections, logger: logger)),
            onServerRunning: { channel in await onListening(channel.localAddress?.port ?? port) },
            logger: logger)
        try await application.run()
    }
}

extension ConnectionLimits {
    /// The console's: people, and the live pages that they leave open.
    static let console: ConnectionLimits = {
        var limits = ConnectionLimits()
        limits.head = .seconds(10)
        limits.connections = 1_024
        limits.sourceConnections = 128
        return limits
    }()
}
