import ArgumentParser
import BusMessages
import Foundation
import SwiftProtobuf

/// `mssctl push`: one push through the HTTP API, as a backend would send it.
struct PushCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push", abstract: "Pushes one payload to a user or device through the HTTP API.",
        discussion: PushContent.recordHint)

    @OptionGroup var api: APIClient
    @OptionGroup var content: PushContent
    @Option(help: "The user id or device id.")
    var to: String

    func run() async throws { try await content.push("single", to: to, through: api) }
}

/// `mssctl push-global`: one push to everybody.
struct PushGlobalCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push-global", abstract: "Pushes one payload to everybody through the HTTP API.",
        discussion: PushContent.recordHint)

    @OptionGroup var api: APIClient
    @OptionGroup var content: PushContent

    func run() async throws { try await content.push("global", to: nil, through: api) }
}

/// What is pushed, and to which part of the target.
struct PushContent: ParsableArguments {
    static let recordHint = """
        Where a broker is set, the push is recorded before it is made, with who makes it (mssctl records); without one \
        the tool pushes as a backend does, and nothing is recorded. \(ToolSettings.amqpHint)
        """

    @Option(help: "The instance.")
    var instance: String
    @Option(help: "The Sync ID.")
    var bizType: String
    @Option(help: "The unique data id; made up when absent.")
    var id: String?
    @OptionGroup var restriction: RestrictionArguments
    @Option(help: "Valid until this moment, in epoch milliseconds.")
    var validUntil: String?
    @Flag(help: "Store nothing; say who would get it now, who not, and why.")
    var dryRun = false
    @Argument(help: "The payload.")
    var payload: String

    func push(_ scope: String, to target: String?, through api: APIClient) async throws {
        let id = id ?? UUID().uuidString
        if try !dryRun && ToolSettings.nameBroker() { try await record(id, to: target) }
        var members = ["bizType": bizType, "payload": payload, "thirdMsgId": id]
        members["linkToken"] = target
        members["osType"] = restriction.os
        members["appMinVersion"] = restriction.minVersion
        members["appMaxVersion"] = restriction.maxVersion
        members["validTimeEnd"] = validUntil
        let query = [("instanceId", instance), ("dryRun", dryRun ? "true" : nil)]
        try APIClient.show(try await api.call("sync/\(scope)", query, body: members))
    }

    /// What is not recorded is not pushed. The record says what was asked for, whatever the API answers then.
    private func record(_ id: String, to target: String?) async throws {
        let push = Mss_Bus_V1_RecordPush.with {
            $0.oplog.instanceID = instance
            $0.oplog.bizType = bizType
            $0.oplog.linkToken = target ?? ""
            $0.oplog.thirdMessageID = id
            $0.payload = Data(payload.utf8)
            $0.operatingSystem = Mss_Bus_V1_OperatingSystem(restriction.operatingSystem)
            $0.minimumVersion = restriction.minVersion ?? ""
            $0.maximumVersion = restriction.maxVersion ?? ""
            $0.validUntilMs = validUntil.flatMap { Int64($0) } ?? 0
        }
        try await ControlClient.with { client in _ = try await client.operate { $0.recordPush = push } }
    }
}
