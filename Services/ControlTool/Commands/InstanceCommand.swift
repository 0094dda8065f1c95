import ArgumentParser
import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel
import ToolSupport

/// `mssctl instance`: lists and changes instances.
struct InstanceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "instance", abstract: "Lists and changes instances.", discussion: ToolSettings.amqpHint,
        subcommands: [
            List.self, Show.self, Create.self, Set.self, Enable.self, Disable.self, TestValidator.self, MetaConfig.self,
        ])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "One line for each instance.")

        func run() async throws {
            try await ControlClient.with { client in
                for one in try await client.snapshot().instances {
                    let check =
                        one.validatorURL.isEmpty
                        ? "no session check" : "session check by \(one.validatorURL)\(Self.mode(of: one))"
                    let signature = one.requiresSignature ? "signed calls only" : "unsigned calls too"
                    print(
                        "\(one.id)\t\(one.isEnabled ? "enabled" : "disabled")\t\(check)\t\(signature)\t"
                            + "\(LimitArguments.text(of: one.limits))\t\(one.name)")
                }
            }
        }

        private static func mode(of instance: Instance) -> String {
            if case .mobileGateway = instance.validatorForm { " (mobile gateway)" } else { "" }
        }
    }

    /// The ids of an app at an mPaaS mobile gateway.
    struct GatewayIDs: ParsableArguments {
        @Option(
            name: .customLong("gateway-app-id"),
            help: "With mgs: AppId at the mobile gateway; by default the part of a new instance's id after _.")
        var gatewayAppID: String?
        @Option(
            name: .customLong("gateway-workspace-id"),
            help:
                "With mgs: WorkspaceId at the mobile gateway; by default the part of a new instance's id before _."
        )
        var gatewayWorkspaceID: String?
    }

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Creates an instance.")
        @Argument(help: "Instance id, <workspaceId>_<appId>.")
        var id: String
        @Option(help: "Display name.")
        var name: String?
        @Option(help: "URL of the tenant's validation endpoint; without it no session check succeeds.")
        var validatorURL: String?
        @Option(help: "Form of the requests: http for JSON by POST, mgs for /mgw.htm of an mPaaS mobile gateway.")
        var validatorMode = ControlFile.InstanceEntry.ValidatorMode.http
        @Flag(help: "With mgs: put the request under _requestBody.")
        var validatorWrapsBody = false
        @OptionGroup var gateway: GatewayIDs
        @Option(help: "Verdict lifetime in seconds.")
        var verdictLifetimeSeconds = 600
        @Option(help: "Retention, 1 to 30 days.")
        var retentionDays = 30
        @Flag(help: "Refuse unsigned calls and connects; see mssctl key.")
        var requireSignature = false
        @OptionGroup var limits: LimitArguments
        @Flag(help: "Bind each device id to the secret of its first registration.")
        var bindDevices = false
        @Flag(help: "Every bind takes over a user's single-device data, not only a bind by the app.")
        var latestConnectionOwns = false
        @Option(help: "Longest session id in UTF-16 units, 100 to 4096.")
        var sessionLength = Limits.sessionUnits
        @Option(
            name: .customLong("relay-url"),
            help: "URL of the tenant for device operations; without it operations are refused.")
        var relayURL: String?

        func run() async throws {
            let entry = ControlFile.InstanceEntry(
                instanceId: id, name: name, validatorUrl: validatorURL, validatorMode: validatorMode,
                validatorWrapsBody: validatorWrapsBody, gatewayAppId: gateway.gatewayAppID,
                gatewayWorkspaceId: gateway.gatewayWorkspaceID, verdictLifetimeSeconds: verdictLifetimeSeconds,
                retentionDays: retentionDays, requireSignature: requireSignature,
                requestsPerSecond: limits.requestsPerSecond, pushesPerDay: limits.pushesPerDay,
                bindDevices: bindDevices, latestConnectionOwns: latestConnectionOwns, sessionLength: sessionLength,
                relayUrl: relayURL, enabled: true)
            let instance = Instance(entry)
            let message = try instance.validatedMessage
            try await ControlClient.with { client in
                try await client.change("create \(instance.id)") { $0.createInstance = message }
            }
        }
    }

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Changes the named settings of an instance.")
        @Argument(help: "Instance id.")
        var id: String
        @Option(help: "Display name.")
        var name: String?
        @Option(help: "URL of the tenant's validation endpoint.")
        var validatorURL: String?
        @Option(help: "Form of the requests: http or mgs; see create.")
        var validatorMode: ControlFile.InstanceEntry.ValidatorMode?
        @Flag(inversion: .prefixedNo, help: "With mgs: put the request under _requestBody.")
        var validatorWrapsBody: Bool?
        @OptionGroup var gateway: GatewayIDs
        @Option(help: "Verdict lifetime in seconds.")
        var verdictLifetimeSeconds: Int?
        @Option(help: "Retention, 1 to 30 days.")
        var retentionDays: Int?
        @Flag(inversion: .prefixedNo, help: "Refuse unsigned calls and connects; see mssctl key.")
        var requireSignature: Bool?
        @Flag(inversion: .prefixedNo, help: "Bind each device id to the secret of its first registration.")
        var bindDevices: Bool?
        @Flag(
            inversion: .prefixedNo,
            help: "Every bind takes over a user's single-device data, not only a bind by the app.")
        var latestConnectionOwns: Bool?
        @Option(help: "Longest session id in UTF-16 units, 100 to 4096.")
        var sessionLength: Int?
        @Option(
            name: .customLong("relay-url"),
            help: "URL of the tenant for device operations; empty: operations are refused.")
        var relayURL: String?
        @OptionGroup(title: "Limits of calls without a key") var limits: LimitArguments

        func run() async throws {
            let options = self
            try await InstanceCommand.change(id, "set \(id)") { instance in
                instance.name = options.name ?? instance.name
                instance.validatorURL = options.validatorURL ?? instance.validatorURL
                instance.validatorForm = ControlFile.InstanceEntry.validatorForm(
                    of: instance.id, mode: options.validatorMode, appID: options.gateway.gatewayAppID,
                    workspaceID: options.gateway.gatewayWorkspaceID, wrapsBody: options.validatorWrapsBody,
                    over: instance.validatorForm)
                instance.verdictLifetime =
                    options.verdictLifetimeSeconds.map { .seconds($0) } ?? instance.verdictLifetime
                instance.retention = options.retentionDays.map { .seconds($0 * 86_400) } ?? instance.retention
                instance.requiresSignature = options.requireSignature ?? instance.requiresSignature
                instance.bindsDevices = options.bindDevices ?? instance.bindsDevices
                instance.latestConnectionOwns = options.latestConnectionOwns ?? instance.latestConnectionOwns
                instance.sessionUnits = options.sessionLength ?? instance.sessionUnits
                instance.limits = options.limits.over(instance.limits)
                instance.relayURL = options.relayURL ?? instance.relayURL
            }
        }
    }

    struct Enable: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Enables an instance.")
        @Argument(help: "Instance id.")
        var id: String
        func run() async throws { try await InstanceCommand.setEnabled(true, id) }
    }

    struct Disable: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Disables an instance: pushes and devices are refused, stored data is kept.")
        @Argument(help: "Instance id.")
        var id: String
        func run() async throws { try await InstanceCommand.setEnabled(false, id) }
    }

    /// The configuration file of an app (K7, C12).
    struct MetaConfig: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints the meta.config for an app of the instance.")
        @Argument(help: "Instance id.")
        var id: String
        @Option(help: "Name or address of the gateway for devices.")
        var server = "127.0.0.1"
        @Option(help: "Port of the gateway.")
        var port = 7443
        @Option(help: "Id of the device key of the app, from mssctl key create.")
        var key: String?
        @Option(help: "File with the secret of the key, which becomes appSecret in the app.", completion: .file())
        var keySecretFile: String?

        func validate() throws {
            guard keySecretFile == nil || key != nil else { throw ValidationError("--key-secret-file needs --key.") }
        }

        func run() async throws {
            let (id, server, port, key) = (id, server, port, key)
            let secret = try keySecretFile.map { try SecretFile.text(of: $0) }
            try await ControlClient.with { client in
                let instance = try await client.instance(id)
                if let key, !instance.keys(for: .device).contains(where: { $0.id == key }) {
                    throw ValidationError("\(key) is not a device key of \(id)")
                }
                let file = MetaConfigFile(instance, server: server, port: port, key: key, secret: secret)
                print(file.text, terminator: "")
            }
        }
    }

    private static func setEnabled(_ isEnabled: Bool, _ id: String) async throws {
        try await change(id, "\(isEnabled ? "enable" : "disable") \(id)") { $0.isEnabled = isEnabled }
    }

    private static func change(
        _ id: String, _ what: String, _ edit: @Sendable (inout Instance) -> Void
    ) async throws {
        try await ControlClient.with { client in
            let existing = try await client.instance(id)
            var instance = existing
            edit(&instance)
            let message = try instance.validatedMessage
            let decidesCallers = instance.requiresSignature && !existing.requiresSignature
            try await client.change(what, decidesCallers: decidesCallers) { $0.modifyInstance = message }
        }
    }
}
