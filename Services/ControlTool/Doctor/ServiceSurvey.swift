import AMQP
import Foundation
import ServiceKit
import SyncModel

/// The state of the service, as the broker shows it: reports of all processes, and queue depths.
struct ServiceSurvey: Sendable {
    /// The last report of each process, sorted by service and start.
    let heard: [ServiceDiagnosis.Heard]
    /// Queue depths by name. The failure of the broker otherwise.
    let queues: Result<[String: AMQPQueueDepth], BusError>

    /// Long enough for two reports of each process.
    private static let listening = Duration.seconds(5)
    private static let connectLimit = Duration.seconds(5)

    /// The finding if the broker does not accept the tool.
    static let noBroker = Finding.problem(
        "broker", "RabbitMQ does not accept the connection within \(connectLimit.components.seconds) s",
        "see the lines above; check MSS_AMQP_HOST, _PORT, _USER, the password and the certificate")

    /// The evaluation.
    var diagnosis: ServiceDiagnosis { ServiceDiagnosis(heard: heard, queues: queues, now: .now) }

    /// Takes a survey and runs the body with it and with the connection. Both are nil if the broker does not accept the
    /// tool.
    static func with<Outcome: Sendable>(
        _ body: @Sendable (ControlClient?, ServiceSurvey?) async throws -> Outcome
    ) async throws -> Outcome {
        let board = ProcessReportBoard()
        return try await ControlClient.with(board: board) { client in
            guard await client.isConnected(within: connectLimit) else { return try await body(nil, nil) }
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
