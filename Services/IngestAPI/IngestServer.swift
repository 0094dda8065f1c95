import BackendCalls
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import ServerTLS
import ServiceKit
import ServiceLifecycle
import SyncModel

/// The HTTP server of the API, with limits on connections, times and sizes.
struct IngestServer: Service {
    let host: String
    let port: Int
    let responder: IngestResponder
    /// A nil value means: plain HTTP.
    var certificates: ServerCertificates?
    /// The networks from which plain HTTP is accepted; nil: all.
    var plainNetworks: PlainHTTPNetworks?
    var limits = ConnectionLimits()
    /// Called with the port once the server listens.
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

/// Writes the refusals of a connection's guard in the form of the API.
struct IngestGuarding: GuardedServer {
    let metrics: IngestMetrics

    func refusal(_ status: HTTPResponseStatus, _ detail: String) -> GuardRefusal {
        let code = ResultCode(refusalStatus: Int(status.code)) ?? .badRequest
        let answer: HTTPAnswer = code == .unavailable ? .unavailable(detail) : .refusal(code, detail)
        metrics.answered(answer)
        let requestID = RequestName.make()
        return GuardRefusal(
            headers: answer.headers(requestID: requestID), body: answer.content.body(requestID: requestID))
    }

    func takesBody(of head: HTTPRequestHead, bytes: Int) -> Bool {
        APICall(path: Substring(head.uri.prefix { $0 != "?" })).map { bytes <= $0.bodyBytes } ?? false
    }
}
