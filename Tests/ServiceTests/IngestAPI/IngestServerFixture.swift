import Foundation
import Logging
import ServerTLS
import ServiceKit
import ServiceLifecycle
import TestSupport
import Testing

@testable import BackendCalls
@testable import IngestAPI

/// An API server over stubs, for tests that send bytes.
enum IngestServerFixture {
    /// Serves on a free port while the body runs, or until `stop` has an element.
    static func serve(
        limits: ConnectionLimits = ConnectionLimits(), submission: StubSubmission = StubSubmission(),
        directory: StubDirectory = StubDirectory(), health: HealthState = HealthState(), inFlightMaximum: Int = 100,
        certificates: ServerCertificates? = nil, quotas: PushQuotas = .stub(), admission: RequestAdmission? = nil,
        bodies: BodyBudget = BodyBudget(), mirror: PushMirror? = nil, stop: AsyncStream<Void> = .init { $0.finish() },
        _ body: @Sendable (Int) async throws -> Void
    ) async throws {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let responder = IngestResponder(
            admission: admission ?? .stub(directory: directory),
            intake: .stub(submission, directory: directory, inFlightMaximum: inFlightMaximum),
            quotas: quotas, operations: .stub(), bodies: bodies, health: health, metrics: IngestMetrics(),
            logger: logger, mirror: mirror)
        let (ports, listening) = AsyncStream.makeStream(of: Int.self)
        let server = IngestServer(
            host: "127.0.0.1", port: 0, responder: responder, certificates: certificates, limits: limits,
            onListening: { listening.yield($0) })
        try await withThrowingTaskGroup(of: Void.self) { group in
            let services = ServiceGroup(services: (mirror.map { [$0] } ?? []) + [server], logger: logger)
            group.addTask { try await services.run() }
            group.addTask { for await _ in stop { await services.triggerGracefulShutdown() } }
            var iterator = ports.makeAsyncIterator()
            let port = try #require(await iterator.next())
            try await body(port)
            group.cancelAll()
        }
    }

    /// Sends the text and returns the answers. The server must close the connection.
    static func exchange(_ port: Int, _ text: String, _ name: String = "") async throws -> [IngestRawAnswer] {
        try await OwnThread.run {
            let connection = try IngestRawConnection(port: port)
            connection.send(text)
            #expect(connection.readToEnd(), "\(name): the connection stays open")
            return connection.answers
        }
    }
}
