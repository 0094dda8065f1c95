import ArgumentParser
import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel

/// `mssctl explain`: the delivery trace of a push.
struct ExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain", abstract: "Explains the state of a push for every device.")

    @OptionGroup var api: APIClient
    @OptionGroup var name: OplogArguments
    @Option(help: "The oplog id, instead of --id.")
    var oplog: Int64?
    @Option(help: "Only this device; a global push shows single devices only with this option.")
    var device: String?
    @Flag(help: "Print the response of the API.")
    var json = false
    @Flag(help: "Also print the payload, if it still exists; needs a broker.")
    var payload = false

    /// The members of the response that the command prints.
    private struct Trace: Decodable {
        struct Receiver: Decodable {
            let deviceId: String
            let state: String
            let detail: String
            let connected: Bool
        }
        struct Count: Decodable {
            let state: String
            let count: Int
            let detail: String
        }
        let oplogId: Int64
        let thirdMsgId: String
        let acceptedAt: Int64
        let validUntil: Int64
        let recalledAt: Int64?
        let state: String
        let detail: String
        let receivers: [Receiver]
        let counts: [Count]?
    }

    func validate() throws {
        if name.id == nil, oplog == nil { throw ValidationError("--id or --oplog is missing: name the push") }
    }

    func run() async throws {
        let answer = try await api.call(
            "sync/trace",
            [
                ("instanceId", name.instance), ("bizType", name.bizType), ("linkToken", name.to),
                ("thirdMsgId", name.id), ("oplogId", oplog.map { "\($0)" }), ("deviceId", device),
            ])
        guard !json, let trace = try? JSONDecoder().decode(Trace.self, from: answer) else {
            return try APIClient.show(answer)
        }
        print("\(trace.state): \(trace.detail)")
        print(
            "oplog \(trace.oplogId), thirdMsgId \(trace.thirdMsgId), "
                + "accepted \(WallTime(milliseconds: trace.acceptedAt).text)"
        )
        print("valid until \(WallTime(milliseconds: trace.validUntil).text)")
        if let recalledAt = trace.recalledAt { print("recalled \(WallTime(milliseconds: recalledAt).text)") }
        for count in trace.counts ?? [] { print("\(count.count)\t\(count.state)\t\(count.detail)") }
        for receiver in trace.receivers {
            let connection = receiver.connected ? "connected" : "not connected"
            print("\(receiver.deviceId)\t\(connection)\t\(receiver.state)\t\(receiver.detail)")
        }
        if payload { try await showPayload(of: trace.oplogId) }
    }

    /// Uses the broker, because the API does not return payloads to backends.
    private func showPayload(of oplogID: Int64) async throws {
        let request = Mss_Bus_V1_TraceRequest.with {
            $0.oplog.instanceID = name.instance
            $0.oplog.bizType = name.bizType
            $0.oplog.linkToken = name.to ?? ""
            $0.oplog.oplogID = oplogID
            $0.withPayload = true
        }
        try await ControlClient.with { client in
            let oplog = try await client.operate { $0.trace = request }.trace.oplog
            let text =
                oplog.binary ? oplog.payload.base64EncodedString() : String(decoding: oplog.payload, as: UTF8.self)
            print(oplog.payload.isEmpty ? "payload: gone" : "payload: \(TerminalText.of(text))")
        }
    }
}
