import Hummingbird
import Logging
import NIOCore
import ServerTLS
import ServiceLifecycle

/// The listening server of the console, bounded in connections, time and size.
struct ConsoleServer: Service {
    /// Connections at one time: people, and the live pages that they leave open.
    private static let connections = 1_024

    let host: String
    let port: Int
    let responder: ConsoleResponder
    /// Nil: plain HTTP.
    var certificates: ServerCertificates?

    func run() async throws {
        let certificates = certificates
        let application = Application(
            responder: responder,
            server: .http1(
                configuration: .init(
                    additionalChannelHandlers: certificates.map { [TLSInstaller(certificates: $0)] } ?? [],
                    idleTimeout: .seconds(75),
                    httpDecoderConfiguration: .init(
                        maxHeaderFieldSize: 16 * 1_024, maxHeaderListSize: 32 * 1_024, maxHeaderFieldCount: 64))),
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port), serverName: nil, backlog: 256,
                availableConnectionsDelegate: .maximum(Self.connections, logger: responder.logger)),
            logger: responder.logger)
        try await application.run()
    }
}
