import Foundation
import Hummingbird
import Logging
import ServiceLifecycle

/// `/livez`, `/readyz` and `/metrics` on a port of their own (spec H8).
struct HealthServer: Service {
    let host: String
    let port: Int
    let health: HealthState
    let metrics: MetricsRegistry
    let logger: Logger

    func run() async throws {
        let router = Router()
        router.get("/livez") { _, _ in "ok\n" }
        let (health, metrics, process) = (health, metrics, ProcessFigures())
        router.get("/readyz") { _, _ in
            let (isReady, conditions) = health.readiness
            let members = conditions.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }
            return Response(
                status: isReady ? .ok : .serviceUnavailable, headers: [.contentType: "application/json"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: "{\(members.joined(separator: ","))}\n")))
        }
        router.get("/metrics") { _, _ in
            let families = metrics.families + health.families + process.families
            return Response(
                status: .ok, headers: [.contentType: "text/plain; version=0.0.4"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: families.map(\.text).joined())))
        }
        var quiet = logger
        quiet.logLevel = .warning
        let application = Application(
            router: router, configuration: .init(address: .hostname(host, port: port), serverName: nil), logger: quiet)
        try await application.run()
    }
}
