import ArgumentParser
import BusMessages
import SwiftProtobuf
import SyncModel

/// `mssctl recall`: cancels a push for all devices that have not stored it.
struct RecallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recall", abstract: "Recalls a push: devices that have not stored it never receive it.",
        discussion: """
            Apps that have received it get a tombstone, in order. If a broker is configured and --api is absent, the \
            oplog writers recall the push and write an audit record. Otherwise the tool calls the API like a backend.
            """)

    @OptionGroup var api: APIClient
    @OptionGroup var name: OplogArguments

    func run() async throws {
        guard let id = name.id else { throw ValidationError("--id is missing: name the thirdMsgId of the push") }
        if try api.goesToWriters { return try await recall(id) }
        var members = ["bizType": name.bizType, "thirdMsgId": id]
        members["linkToken"] = name.to
        try APIClient.show(try await api.call("sync/recall", [("instanceId", name.instance)], body: members))
    }

    private func recall(_ id: String) async throws {
        let oplog = Mss_Bus_V1_OplogName.with {
            $0.instanceID = name.instance
            $0.bizType = name.bizType
            $0.linkToken = name.to ?? ""
            $0.thirdMessageID = id
        }
        try await ControlClient.with { client in
            let reply = try await client.operate { $0.recall = oplog }.recall
            guard reply.oplogID > 0 else {
                return try OperatorAnswer(.argsIsNull, detail: "There is no such oplog.").show()
            }
            guard !reply.uncertain else { return try OperatorAnswer.uncertain.show() }
            try OperatorAnswer(.success, oplogId: reply.oplogID).show()
        }
    }
}

/// The name of an oplog.
struct OplogArguments: ParsableArguments {
    @Option(help: "The instance.")
    var instance: String
    @Option(help: "The Sync ID.")
    var bizType: String
    @Option(help: "The user id or device id; absent for a global push.")
    var to: String?
    @Option(help: "The thirdMsgId of the push.")
    var id: String?
}
