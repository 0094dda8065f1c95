import AMQP
import Foundation
import ServiceKit
import SyncModel

/// What the whole service shows over the broker: how every process stands, and the queues.
struct ServiceSurvey: Sendable {
    /// By service and start.
    let heard: [ServiceDiagnosis.Heard]
    /// The failure: why the broker did not count them.
    let queues: Result<[String: AMQPQueueDepth], BusError>

    /// Two reports of each process.
    private static let listening = Duration.seconds(5)
    private static let patience = Duration.seconds(5)

    /// What there is to say where the broker is not reached.
    static let noBroker = Finding.problem(
        "broker", "RabbitMQ does not let us in within \(patience.components.seconds) s",
        "the lines above say why: look at MSS_AMQP_HOST, _PORT, _USER, its password and its certificate")

    /// Its judgement.
    var diagnosis: ServiceDiagnosis { ServiceDiagnosis(heard: heard, queues: queues, now: .now) }

    /// Takes one and runs the body with it, and with the connection; neither is there when the broker does not let the
    /// tool in.
    static func with<Outcome: Sendable>(
        _ body: @Sendable (ControlClient?, ServiceSurvey?) async throws -> Outcome
    ) async throws -> Outcome {
        let board = ProcessReportBoard()
        return try await ControlClient.with(board: board) { client in
            guard await client.isConnected(within: patience) else { return try await body(nil, nil) }
            let heard = await listen(to: board)
            return try await body(client, ServiceSurvey(heard: heard, queues: await client.queueDepths()))
        }
    }

    private static func listen(to board: ProcessReportBoard) async -> [ServiceDiagnosis.Heard] {
        var heard: [String: ServiceDiagnosis.Heard] = [:]
        let end = ContinuousClock.now + listening
        while .now < end {
            for report in board.reports where heard[report.processID]?.report != report {
                let ahead = report.clock.map { Duration.milliseconds($0.milliseconds - WallTime.now.milliseconds) }
                heard[report.processID] = ServiceDiagnosis.Heard(report: report, ahead: ahead)
            }
            try? await Task.sleep(for: .milliseconds(20))
        }
        return heard.values.sorted {
            ($0.report.service, $0.report.startedAt) < ($1.report.service, $1.report.startedAt)
        }
    }
}
