import DeviceProtocol
import SwiftProtobuf

/// Short texts for frames, without payloads.
enum PacketSummary {
    static func text(of packet: Mss_Device_V1_Packet) -> String {
        switch packet.body {
        case .connect: "Connect"
        case .connected: "Connected"
        case .bind(let bind): "Bind \(bind.bindNumber)"
        case .bindResult(let result): "BindResult \(result.bindNumber) \(result.accepted ? "accepted" : "refused")"
        case .push(let push): "Push (\(push.batches.map(text).joined(separator: "; ")))"
        case .storedAck(let ack):
            "StoredAck (\(ack.channels.map { "\($0.bizType) \($0.upto)" } + ack.rereads.map { "re-read \($0)" }))"
        case .confirmReport(let report):
            "ConfirmReport \(report.reportID) (\(report.channels.flatMap(\.oplogIds)), \(report.resent.count) resent)"
        case .confirmRecorded(let recorded): "ConfirmRecorded \(recorded.reportID)"
        case .caughtUp(let mark): "CaughtUp \(mark.bindNumber)"
        case .sessionState(let state): "SessionState \(state.validity)"
        case .foreground: "Foreground"
        case .ping(let ping): "Ping \(ping.number)"
        case .pong(let pong): "Pong \(pong.number)"
        case .close(let close): "Close \(close.code)"
        case .subscriptions: "Subscriptions"
        case .historyRequest(let request): "HistoryRequest \(request.requestNumber)"
        case .historyPage(let page):
            "HistoryPage \(page.requestNumber) \(page.refusal) \(page.entries.map(\.oplogID)) head \(page.head)"
        case .summaryRequest(let request): "SummaryRequest \(request.requestNumber)"
        case .summaryPage(let page): "SummaryPage \(page.requestNumber) \(page.refusal) \(page.channels.map(\.bizType))"
        case .submitOperations(let frame):
            "SubmitOperations \(frame.number) (\(frame.operations.map(\.operationID)))"
        case .operationsTaken(let reply):
            "OperationsTaken \(reply.number) (\(reply.refusals.map { "\($0.operationID) \($0.code)" }))"
        case .keepParameters(let frame): "KeepParameters \(frame.number) (\(frame.parameters.map(\.name)))"
        case .parametersKept(let reply): "ParametersKept \(reply.number) \(reply.refusal)"
        case .userParameters(let list): "UserParameters \(list.bindNumber) (\(list.parameters.map(\.name)))"
        case .ownershipTaken(let taken): "OwnershipTaken \(taken.bindNumber)"
        case nil: "a packet without a known body"
        }
    }

    /// For example `UCHAT 0…5: 1 2 5`.
    static func text(of batch: Mss_Device_V1_ChannelBatch) -> String {
        let ids = batch.entries.count <= 8 ? batch.entries.map { "\($0.oplogID)" } : ["\(batch.entries.count) entries"]
        let reread = batch.reread == 0 ? "" : " re-read \(batch.reread)"
        return "\(batch.bizType) bind \(batch.bindNumber)\(reread) \(batch.after)…\(batch.upto): "
            + ids.joined(separator: " ")
    }
}
