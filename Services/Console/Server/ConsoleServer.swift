import Foundation
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import ServerTLS
import ServiceKit
import ServiceLifecycle

/// The HTTP server of the console, with limits on connections, times and sizes.
struct ConsoleServer: Service {
    let host: String
    let port: Int
    let responder: ConsoleResponder
    /// A nil value means: plain HTTP.
    var certificates: ServerCertificates?
    var limits = ConnectionLimits.console
    /// Called with the port once the server listens.
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
    /// The console's limits: they allow for operators who leave live pages open.
    static let console: ConnectionLimits = {
        var limits = ConnectionLimits()
        limits.head = .seconds(10)
        limits.connections = 1_024
        limits.sourceConnections = 128
        return limits
    }()
}

/// Writes the refusals of a connection's guard in the form of the console (SEC3).
private struct ConsoleGuarding: GuardedServer {
    let logger: Logger

    func refusal(_ status: HTTPResponseStatus, _ detail: String) -> GuardRefusal {
        let requestID = UUID().uuidString.lowercased()
        logger.info(
            "refused a request before it was read",
            metadata: ["request_id": "\(requestID)", "status": "\(status.code)", "detail": "\(detail)"])
        let problem = Problem(code: "BAD_REQUEST", detail: detail, field: nil, requestId: requestID)
        let body = (try? JSONEncoder().encode(problem)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        var headers =
            SecurityHeaders.all + [
                SecurityHeaders.notKept, ("Content-Type", "application/json; charset=utf-8"),
                ("X-Request-Id", requestID),
            ]
        if status == .serviceUnavailable { headers.append(("Retry-After", "2")) }
        return GuardRefusal(headers: headers, body: body)
    }

    /// Answers `Expect: 100-continue`: accepts bodies up to the length limit.
    func takesBody(of head: HTTPRequestHead, bytes: Int) -> Bool { bytes <= ConsoleResponder.bodyBytes }
}
