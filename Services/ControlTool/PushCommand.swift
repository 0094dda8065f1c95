import ArgumentParser
import Foundation

/// `mssctl push`: one push through the HTTP API, as a backend would send it.
struct PushCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push", abstract: "Pushes one payload to a user or device through the HTTP API.")

    @OptionGroup var api: APIClient
    @OptionGroup var content: PushContent
    @Option(help: "The user id or device id.")
    var to: String

    func run() async throws { try await content.push("single", to: to, through: api) }
}

/// `mssctl push-global`: one push to everybody.
struct PushGlobalCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push-global", abstract: "Pushes one payload to everybody through the HTTP API.")

    @OptionGroup var api: APIClient
    @OptionGroup var content: PushContent

    func run() async throws { try await content.push("global", to: nil, through: api) }
}

/// What is pushed, and to which part of the target.
struct PushContent: ParsableArguments {
    @Option(help: "The instance.")
    var instance: String
    @Option(help: "The Sync ID.")
    var bizType: String
    @Option(help: "The unique data id; made up when absent.")
    var id: String?
    @Option(help: "Only for iOS or Android.")
    var os: String?
    @Option(help: "Only from this app version on.")
    var minVersion: String?
    @Option(help: "Only up to this app version.")
    var maxVersion: String?
    @Option(help: "Valid until this moment, in epoch milliseconds.")
    var validUntil: String?
    @Flag(help: "Store nothing; say who would get it now, who not, and why.")
    var dryRun = false
    @Argument(help: "The payload.")
    var payload: String

    func push(_ scope: String, to target: String?, through api: APIClient) async throws {
        var members = ["bizType": bizType, "payload": payload, "thirdMsgId": id ?? UUID().uuidString]
        members["linkToken"] = target
        members["osType"] = os
        members["appMinVersion"] = minVersion
        members["appMaxVersion"] = maxVersion
        members["validTimeEnd"] = validUntil
        let query = [("instanceId", instance), ("dryRun", dryRun ? "true" : nil)]
        try APIClient.show(try await api.call("sync/\(scope)", query, body: members))
    }
}
