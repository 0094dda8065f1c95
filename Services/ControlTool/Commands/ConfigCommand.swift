import ArgumentParser
import BusMessages
import SwiftProtobuf
import SyncModel
import ToolSupport

/// `mssctl config`: creates, changes and deletes configurations (C2–C5, D17).
struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Lists and changes sync configurations.",
        discussion: "The command returns when the change is in force on every gateway. \(ToolSettings.amqpHint)",
        subcommands: [List.self, Show.self, Create.self, Set.self, Online.self, Offline.self, Delete.self])

    /// The name of a configuration.
    struct Name: ParsableArguments {
        @Option(help: "The instance.")
        var instance: String
        @Argument(help: "The Sync ID.")
        var bizType: String

        var bus: Mss_Bus_V1_ConfigurationName {
            .with {
                $0.instanceID = instance
                $0.bizType = bizType
            }
        }
    }

    /// The rules that can be changed later. `set` keeps a rule without an option, `create` uses the console's default.
    struct Rules: ParsableArguments {
        @Option(help: "Purpose of the configuration.")
        var description: String?
        @Flag(inversion: .prefixedNo, help: "Send to every device of the user; only with target user.")
        var multiDevice: Bool?
        @Flag(inversion: .prefixedNo, help: "Store the payload for offline devices.")
        var persistent: Bool?
        @Option(help: "Oplogs of a backlog to send: all, or the newest 1 to 1000.")
        var repush: RepushMode?
        @Flag(inversion: .prefixedNo, help: "Send only to sessions with a valid verdict of the tenant.")
        var checkSession: Bool?
        @Option(help: "Verdict lifetime in seconds; 0: a verdict for every batch; instance: the value of the instance.")
        var verdictLifetimeSeconds: VerdictLifetime?
        @Flag(inversion: .prefixedNo, help: "Also notify connected devices of a global push, at a limited rate.")
        var immediate: Bool?
        @Option(help: "Condition for oplogs, for example: region == $region; empty: all.")
        var filter: String?
        @Option(help: "Attributes of oplogs, for example: region text, price number.")
        var attributes: String?
        @Option(help: "Parameters of receivers, for example: region text = \"north\", max number.")
        var parameters: String?

        func apply(to configuration: inout SyncConfiguration) {
            if let description { configuration.description = description }
            if let multiDevice { configuration.isMultiDevice = multiDevice }
            if let persistent { configuration.isPersistent = persistent }
            if let repush { configuration.repush = repush }
            if let checkSession { configuration.checksSession = checkSession }
            if checkSession == false { configuration.verdictLifetime = nil }
            if let verdictLifetimeSeconds { configuration.verdictLifetime = verdictLifetimeSeconds.lifetime }
            if let immediate { configuration.isImmediate = immediate }
            if let filter { configuration.subscription.filter = filter }
            if let attributes { configuration.subscription.attributes = attributes }
            if let parameters { configuration.subscription.parameters = parameters }
        }
    }

    /// Seconds or `instance`.
    struct VerdictLifetime: ExpressibleByArgument {
        let lifetime: Duration?

        init?(argument: String) {
            if argument == "instance" {
                lifetime = nil
            } else if let seconds = UInt32(argument) {
                lifetime = .seconds(Int64(seconds))
            } else {
                return nil
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "One line for each configuration.")
        @Option(help: "Only this instance.")
        var instance: String?

        func run() async throws {
            let instance = instance
            try await ControlClient.with { client in
                for one in try await client.snapshot().configurations
                where instance == nil || one.instanceID.text == instance { print(one.line) }
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "One configuration, with one line for each rule.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name
            try await ControlClient.with { print(try await $0.configuration(name.instance, name.bizType).page) }
        }
    }

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Creates a configuration, which is online at once.",
            discussion: "Defaults: appointed, user, multi-device, persistent, threshold 100, no session check.")
        @OptionGroup var name: Name
        @Option(help: "appointed: to one user or device; global: to all.")
        var scope = ChannelKind.Scope.appointed
        @Option(help: "user or device.")
        var target = ChannelKind.Target.user
        @OptionGroup var rules: Rules

        func run() async throws {
            var configuration = SyncConfiguration.standard(
                instanceID: InstanceID(name.instance), bizType: BizType(name.bizType), kind: ChannelKind(scope, target))
            rules.apply(to: &configuration)
            let message = configuration.bus
            try await ControlClient.with {
                try await $0.change("create \(message.bizType)") {
                    $0.createConfiguration = message
                }
            }
        }
    }

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Changes the named rules of a configuration.",
            discussion: """
                Sync ID and target cannot be changed. Stored pushes keep the scope that they were pushed with, and are \
                still delivered.
                """)
        @OptionGroup var name: Name
        @Option(help: "appointed: to one user or device; global: to all, which is persistent and for every device.")
        var scope: ChannelKind.Scope?
        @OptionGroup var rules: Rules

        func run() async throws {
            let (name, scope, rules) = (name, scope, rules)
            try await ControlClient.with { client in
                var configuration = try await client.configuration(name.instance, name.bizType)
                if let scope {
                    configuration = configuration.scoped(to: configuration.kind.with(scope)) ?? configuration
                }
                rules.apply(to: &configuration)
                let message = configuration.bus
                try await client.change("set \(name.bizType)") { $0.modifyConfiguration = message }
            }
        }
    }

    struct Online: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Accepts pushes again, and sends withheld data.")
        @OptionGroup var name: Name
        func run() async throws { try await ConfigCommand.setOnline(true, name) }
    }

    struct Offline: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Refuses pushes (BIZ_NOT_ONLINE) and withholds stored data.")
        @OptionGroup var name: Name
        func run() async throws { try await ConfigCommand.setOnline(false, name) }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Deletes an offline configuration with all its data and keys.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name.bus
            try await ControlClient.with {
                try await $0.change("delete \(name.bizType)") { $0.deleteConfiguration = name }
            }
        }
    }

    private static func setOnline(_ isOnline: Bool, _ name: Name) async throws {
        let change = Mss_Bus_V1_ConfigurationSwitch.with {
            $0.name = name.bus
            $0.online = isOnline
        }
        try await ControlClient.with {
            try await $0.change("\(isOnline ? "online" : "offline") \(change.name.bizType)") {
                $0.switchConfiguration = change
            }
        }
    }
}

extension ChannelKind.Scope: ExpressibleByArgument {}

extension ChannelKind.Target: ExpressibleByArgument {}

extension RepushMode: ExpressibleByArgument {
    public init?(argument: String) { self.init(argument) }
}

extension SyncConfiguration {
    private var verdictAge: String { verdictLifetime.map { "\($0.components.seconds) s" } ?? "as the instance says" }

    /// One line of a list.
    fileprivate var line: String {
        var words = [kind.scope.rawValue, kind.target.rawValue]
        if kind == .user { words.append(isMultiDevice ? "multi-device" : "single-device") }
        words.append(isPersistent ? "persistent" : "non-persistent")
        words.append("repush=\(repush.text)")
        if checksSession { words.append("check-session") }
        if verdictLifetime != nil { words.append("verdict-lifetime=\(verdictAge)") }
        if isImmediate { words.append("immediate") }
        if !subscription.filter.isEmpty { words.append("filtered") }
        words.append(isOnline ? "online" : "offline")
        return "\(instanceID)\t\(bizType)\t\(words.joined(separator: " "))\t\(description)"
    }

    /// One line for each rule.
    fileprivate var page: String {
        [
            ("instance", instanceID.text), ("Sync ID", bizType.text), ("description", description),
            ("scope", kind.scope.rawValue),
            ("target", kind.target.rawValue), ("multi-device", isMultiDevice ? "yes" : "no"),
            ("persistent", isPersistent ? "yes" : "no"), ("re-push", repush.text),
            ("session check", checksSession ? "yes" : "no"),
            ("verdict lifetime", checksSession ? verdictAge : "-"), ("immediate", isImmediate ? "yes" : "no"),
            ("filter", subscription.filter), ("attributes", subscription.attributes),
            ("parameters", subscription.parameters), ("online", isOnline ? "yes" : "no"),
            ("revision", "\(revision)"),
        ].map { "\($0.0): \($0.1)" }.joined(separator: "\n")
    }
}
