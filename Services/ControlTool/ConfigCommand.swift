import ArgumentParser
import BusMessages
import SwiftProtobuf
import SyncModel

/// `mssctl config`: sync configurations from their creation to their end (spec C2–C5, D17).
struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Lists and changes sync configurations.",
        discussion: "A change is reported once it is in force on every gateway. \(ToolSettings.amqpHint)",
        subcommands: [List.self, Show.self, Create.self, Set.self, Online.self, Offline.self, Delete.self])

    /// Which configuration a command is about.
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

    /// What can be changed later; what is absent stays, or is as the console preselects it.
    struct Rules: ParsableArguments {
        @Option(help: "What it is for.")
        var description: String?
        @Flag(inversion: .prefixedNo, help: "Every device of the user receives; only with users as the target.")
        var multiDevice: Bool?
        @Flag(inversion: .prefixedNo, help: "Stored for those who are offline.")
        var persistent: Bool?
        @Option(help: "Of a backlog: all, or the newest 1 to 1000.")
        var repush: Repush?
        @Flag(inversion: .prefixedNo, help: "Only to sessions that the tenant calls valid.")
        var checkSession: Bool?
        @Option(help: "How old a verdict may be: seconds, 0 to ask before every batch, or instance, as it says.")
        var verdictLifetimeSeconds: VerdictLifetime?
        @Flag(inversion: .prefixedNo, help: "Global data goes to connected devices at once, paced.")
        var immediate: Bool?
        @Option(help: "Which oplogs a receiver is sent, such as: region == $region; empty: all.")
        var filter: String?
        @Option(help: "What oplogs may say of themselves, such as: region text, price number.")
        var attributes: String?
        @Option(help: "What the filter may ask of a receiver, such as: region text = \"north\", max number.")
        var parameters: String?

        func apply(to configuration: inout SyncConfiguration) {
            if let description { configuration.description = description }
            if let multiDevice { configuration.isMultiDevice = multiDevice }
            if let persistent { configuration.isPersistent = persistent }
            if let repush { configuration.repush = repush.mode }
            if let checkSession { configuration.checksSession = checkSession }
            if checkSession == false { configuration.verdictLifetime = nil }
            if let verdictLifetimeSeconds { configuration.verdictLifetime = verdictLifetimeSeconds.lifetime }
            if let immediate { configuration.isImmediate = immediate }
            if let filter { configuration.subscription.filter = filter }
            if let attributes { configuration.subscription.attributes = attributes }
            if let parameters { configuration.subscription.parameters = parameters }
        }
    }

    /// `all`, or a threshold.
    struct Repush: ExpressibleByArgument {
        let mode: RepushMode

        init?(argument: String) {
            if argument == "all" {
                mode = .all
            } else if let newest = Int(argument), (1...1_000).contains(newest) {
                mode = .threshold(newest)
            } else {
                return nil
            }
        }
    }

    /// Seconds, or `instance`.
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
        @Option(help: "Only of this instance.")
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
        static let configuration = CommandConfiguration(abstract: "One configuration, a line for each of its rules.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name
            try await ControlClient.with { print(try await $0.configuration(name.instance, name.bizType).page) }
        }
    }

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Creates a configuration; it is online at once.",
            discussion: "Preselected: appointed, user, multi-device, persistent, threshold 100, no session check.")
        @OptionGroup var name: Name
        @Option(help: "appointed: to one user or device; global: to all.")
        var scope = ControlFile.ConfigurationEntry.Scope.appointed
        @Option(help: "user or device.")
        var target = ControlFile.ConfigurationEntry.Target.user
        @OptionGroup var rules: Rules

        func run() async throws {
            let entry = ControlFile.ConfigurationEntry(
                instanceId: name.instance, bizType: name.bizType, description: "", scope: scope, target: target,
                multiDevice: nil, persistent: nil, repush: nil, checkSession: nil, verdictLifetimeSeconds: nil,
                immediate: nil, filter: nil, attributes: nil, parameters: nil, online: true)
            var configuration = SyncConfiguration(entry)
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
            abstract: "Changes rules of a configuration; what is not named stays.",
            discussion: """
                Sync ID and target cannot be changed. What is stored stays in the scope that it was pushed with, and still \
                goes out.
                """)
        @OptionGroup var name: Name
        @Option(help: "appointed: to one user or device; global: to all, which is persistent and for every device.")
        var scope: ControlFile.ConfigurationEntry.Scope?
        @OptionGroup var rules: Rules

        func run() async throws {
            let (name, scope, rules) = (name, scope, rules)
            try await ControlClient.with { client in
                var configuration = try await client.configuration(name.instance, name.bizType)
                if let scope {
                    let kind = configuration.kind
                    configuration =
                        configuration.scoped(to: scope == .global ? kind.ofEverybody : kind.ofOne) ?? configuration
                }
                rules.apply(to: &configuration)
                let message = configuration.bus
                try await client.change("set \(name.bizType)") { $0.modifyConfiguration = message }
            }
        }
    }

    struct Online: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Takes pushes again, and sends what waited.")
        @OptionGroup var name: Name
        func run() async throws { try await ConfigCommand.setOnline(true, name) }
    }

    struct Offline: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Refuses pushes (BIZ_NOT_ONLINE) and holds back what is stored.")
        @OptionGroup var name: Name
        func run() async throws { try await ConfigCommand.setOnline(false, name) }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Deletes a configuration that is offline, with all its data and keys.")
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

extension SyncConfiguration {
    private var scope: String { kind.isGlobal ? "global" : "appointed" }
    private var target: String { kind.needsUser ? "user" : "device" }
    private var backlog: String {
        switch repush {
        case .all: "all"
        case .threshold(let newest): "\(newest)"
        }
    }

    private var verdictAge: String { verdictLifetime.map { "\($0.components.seconds) s" } ?? "as the instance says" }

    /// One line of a list.
    fileprivate var line: String {
        var words = [scope, target]
        if kind == .user { words.append(isMultiDevice ? "multi-device" : "single-device") }
        words.append(isPersistent ? "persistent" : "non-persistent")
        words.append("repush=\(backlog)")
        if checksSession { words.append("check-session") }
        if verdictLifetime != nil { words.append("verdict-lifetime=\(verdictAge)") }
        if isImmediate { words.append("immediate") }
        if !subscription.filter.isEmpty { words.append("filtered") }
        words.append(isOnline ? "online" : "offline")
        return "\(instanceID)\t\(bizType)\t\(words.joined(separator: " "))\t\(description)"
    }

    /// Every rule on a line of its own.
    fileprivate var page: String {
        [
            ("instance", instanceID.text), ("Sync ID", bizType.text), ("description", description), ("scope", scope),
            ("target", target), ("multi-device", isMultiDevice ? "yes" : "no"),
            ("persistent", isPersistent ? "yes" : "no"), ("re-push", backlog),
            ("session check", checksSession ? "yes" : "no"),
            ("verdict lifetime", checksSession ? verdictAge : "-"), ("immediate", isImmediate ? "yes" : "no"),
            ("filter", subscription.filter), ("attributes", subscription.attributes),
            ("parameters", subscription.parameters), ("online", isOnline ? "yes" : "no"),
            ("revision", "\(revision)"),
        ].map { "\($0.0): \($0.1)" }.joined(separator: "\n")
    }
}
