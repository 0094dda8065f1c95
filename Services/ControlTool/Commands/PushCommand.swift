import ArgumentParser
import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel
import ToolSupport

/// `mssctl push`: one push through the HTTP API, like a backend.
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

/// `mssctl push-global`: one global push.
struct PushGlobalCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push-global", abstract: "Pushes one payload to all users or devices through the HTTP API.",
        discussion: PushContent.recordHint)

    @OptionGroup var api: APIClient
    @OptionGroup var content: PushContent

    func run() async throws { try await content.push("global", to: nil, through: api) }
}

/// The content of a push, and its targeting.
struct PushContent: ParsableArguments {
    static let recordHint = """
        If a broker is configured, the push is first written to the audit log with its operator (mssctl records). \
        Without a broker the tool pushes like a backend, without an audit record. \(ToolSettings.amqpHint)
        """

    @Option(help: "The instance.")
    var instance: String
    @Option(help: "The Sync ID.")
    var bizType: String
    @Option(help: "The thirdMsgId; random when absent.")
    var id: String?
    @OptionGroup var restriction: RestrictionArguments
    @Option(help: "End of validity, in milliseconds since 1970.")
    var validUntil: String?
    @Option(help: "The conversation that the push belongs to.")
    var conversation: String?
    @Flag(help: "Store nothing; print which devices would receive the push, and why.")
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
        members["conversation"] = conversation
        let query = [("instanceId", instance), ("dryRun", dryRun ? "true" : nil)]
        try APIClient.show(try await api.call("sync/\(scope)", query, body: members))
    }

    /// Writes the audit record. Without a record there is no push. The record contains the request, also if the
    /// API refuses the push.
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
            $0.conversation = conversation ?? ""
        }
        try await ControlClient.with { client in _ = try await client.operate { $0.recordPush = push } }
    }
}

/// The targeting of a push (D12).
struct RestrictionArguments: ParsableArguments {
    @Option(help: "Only for iOS or Android.")
    var os: String?
    @Option(help: "Only from this app version.")
    var minVersion: String?
    @Option(help: "Only up to this app version.")
    var maxVersion: String?

    /// The named operating system. The value is nil if none or an unknown one was named.
    var operatingSystem: OperatingSystem? { os.flatMap { OperatingSystem(name: $0) } }
}
