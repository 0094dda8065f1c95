import ArgumentParser
import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel

/// `mssctl instance`: the apps that use the service, each in one environment.
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
                            + "\(LimitArguments.words(one.limits))\t\(one.name)")
                }
            }
        }

        private static func mode(of instance: Instance) -> String {
            if case .mobileGateway = instance.validatorForm { " (mobile gateway)" } else { "" }
        }
    }

    /// How an mPaaS mobile gateway knows the app.
    struct GatewayIDs: ParsableArguments {
        @Option(
            name: .customLong("gateway-app-id"),
            help: "With mgs: the AppId at the mobile gateway; of a new one the part of the id behind its only _.")
        var gatewayAppID: String?
        @Option(
            name: .customLong("gateway-workspace-id"),
            help: "With mgs: the WorkspaceId at the mobile gateway; of a new one the part of the id before its only _.")
        var gatewayWorkspaceID: String?
    }

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Creates an instance.")
        @Argument(help: "Its id, <workspaceId>_<appId>.")
        var id: String
        @Option(help: "A name for people.")
        var name: String?
        @Option(help: "Where the tenant answers session checks; none: no check can succeed.")
        var validatorURL: String?
        @Option(help: "How it is asked: http, JSON posted to it, or mgs, through an mPaaS mobile gateway's /mgw.htm.")
        var validatorMode = ControlFile.InstanceEntry.ValidatorMode.http
        @Flag(help: "With mgs: the question stands under _requestBody.")
        var validatorWrapsBody = false
        @OptionGroup var gateway: GatewayIDs
        @Option(help: "How long a valid verdict stands.")
        var verdictLifetimeSeconds = 600
        @Option(help: "How long data is kept at the most, 1 to 30 days.")
        var retentionDays = 30
        @Flag(help: "Refuse calls and connects that are not signed; see mssctl key.")
        var requireSignature = false
        @OptionGroup var limits: LimitArguments
        @Flag(help: "A device id belongs to the secret that it is first registered with.")
        var bindDevices = false
        @Flag(help: "Every bind takes a user's single-device data over, not only one that the app asked for.")
        var latestConnectionOwns = false
        @Option(help: "UTF-16 units of a session id at the most, 100 to 4096.")
        var sessionLength = Limits.sessionUnits
        @Option(name: .customLong("relay-url"), help: "Where the tenant takes operations; none: they are refused.")
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
            let message = try instance.soundBus
            try await ControlClient.with { client in
                try await client.change("create \(instance.id)") { $0.createInstance = message }
            }
        }
    }

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Changes an instance; what is not named stays.")
        @Argument(help: "Its id.")
        var id: String
        @Option(help: "A name for people.")
        var name: String?
        @Option(help: "Where the tenant answers session checks.")
        var validatorURL: String?
        @Option(help: "How it is asked: http or mgs, as with create.")
        var validatorMode: ControlFile.InstanceEntry.ValidatorMode?
        @Flag(inversion: .prefixedNo, help: "With mgs: the question stands under _requestBody.")
        var validatorWrapsBody: Bool?
        @OptionGroup var gateway: GatewayIDs
        @Option(help: "How long a valid verdict stands.")
        var verdictLifetimeSeconds: Int?
        @Option(help: "How long data is kept at the most, 1 to 30 days.")
        var retentionDays: Int?
        @Flag(inversion: .prefixedNo, help: "Refuse calls and connects that are not signed; see mssctl key.")
        var requireSignature: Bool?
        @Flag(inversion: .prefixedNo, help: "A device id belongs to the secret that it is first registered with.")
        var bindDevices: Bool?
        @Flag(
            inversion: .prefixedNo,
            help: "Every bind takes a user's single-device data over, not only one that the app asked for.")
        var latestConnectionOwns: Bool?
        @Option(help: "UTF-16 units of a session id at the most, 100 to 4096.")
        var sessionLength: Int?
        @Option(
            name: .customLong("relay-url"),
            help: "Where the tenant takes operations of devices; empty: they are refused.")
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
        static let configuration = CommandConfiguration(abstract: "Serves the instance again.")
        @Argument(help: "Its id.")
        var id: String
        func run() async throws { try await InstanceCommand.setEnabled(true, id) }
    }

    struct Disable: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Refuses its pushes and devices; what is stored waits.")
        @Argument(help: "Its id.")
        var id: String
        func run() async throws { try await InstanceCommand.setEnabled(false, id) }
    }

    /// The file that an app is built with (spec K7, C12).
    struct MetaConfig: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints the meta.config that an app of the instance is built with.")
        @Argument(help: "Its id.")
        var id: String
        @Option(help: "The gateway's name or address, as devices reach it.")
        var server = "127.0.0.1"
        @Option(help: "The gateway's port.")
        var port = 7443
        @Option(help: "The id of the device key that the app signs with; mssctl key create makes one.")
        var key: String?
        @Option(help: "A file with the key's secret: it goes into the app as appSecret.", completion: .file())
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
                    throw ValidationError("\(key) is no device key of \(id)")
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
            let message = try instance.soundBus
            let decidesCallers = instance.requiresSignature && !existing.requiresSignature
            try await client.change(what, decidesCallers: decidesCallers) { $0.modifyInstance = message }
        }
    }
}
