import ArgumentParser
import BusMessages
import Credentials
import Foundation
import SwiftProtobuf
import SyncModel

/// `mssctl key`: the keys with which instances sign and are signed for (spec H9, C8).
struct KeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key", abstract: "Makes, lists and ends the keys of instances.",
        discussion: """
            An instance has at most \(Limits.liveKeys) live keys of a purpose: to rotate, create the second, switch to \
            it, revoke the first. \(ToolSettings.amqpHint)
            """,
        subcommands: [Create.self, List.self, Revoke.self, Reseal.self, KeyRingCommand.self])

    /// Whose requests a key signs.
    enum Purpose: String, CaseIterable, ExpressibleByArgument {
        case backend, device, callout

        init(_ purpose: AppKey.Purpose) {
            switch purpose {
            case .backend: self = .backend
            case .device: self = .device
            case .callout: self = .callout
            }
        }

        var model: AppKey.Purpose {
            switch self {
            case .backend: .backend
            case .device: .device
            case .callout: .callout
            }
        }
    }

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Makes a key and prints its secret in Base64, this once.")
        @Option(help: "The instance.")
        var instance: String
        @Option(help: "What it signs: calls of a backend, connects of devices, our questions to the tenant.")
        var purpose: Purpose
        @OptionGroup var limits: LimitArguments
        @Option(help: "For callouts: a secret of the tenant's own, in Base64, from this file; -: standard input.")
        var secretFile: String?

        func run() async throws {
            var given = Data()
            if let secretFile {
                guard let secret = Data(base64Encoded: try SecretFile.text(of: secretFile)), !secret.isEmpty else {
                    throw ValidationError("the secret in \(secretFile) is not Base64")
                }
                given = secret
            }
            let limits = limits.over(KeyLimits())
            let request = Mss_Bus_V1_CreateKey.with {
                $0.instanceID = instance
                $0.purpose = purpose.model.bus
                $0.secret = given
                $0.limits = limits.bus
                $0.keyID = "k" + HexText.of(RandomBytes.make(8))
            }
            try await ControlClient.with { client in
                if !request.secret.isEmpty {
                    let known = try await client.snapshot().instances.first { $0.id.text == request.instanceID }
                    if let known, let fault = KeyCommand.fault(of: request.secret, signing: known.validatorForm) {
                        throw ValidationError(fault)
                    }
                }
                // Not repeated: only the first answer has the secret. It is shown before anything else can go wrong.
                try await client.change(
                    "create key", decidesCallers: request.purpose == .backend, isRepeatable: false,
                    { $0.createKey = request }
                ) { made in
                    print("key\t\(made.keyID)")
                    if request.secret.isEmpty { print("secret\t\(made.secret.base64EncodedString())") }
                }
            }
        }
    }

    /// What is wrong with a secret for callouts in this form, after its Base64; nil when it can be one.
    static func fault(of secret: Data, signing form: ValidatorForm) -> String? {
        guard form != .http, String(data: secret, encoding: .utf8) == nil else { return nil }
        return "what this Base64 stands for is no text, and mobile gateways' secrets are: give the app's secret at the "
            + "gateway in Base64 (printf %s SECRET | base64), not as it is"
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "One line for each live key, without its secret.")
        @Option(help: "Only of this instance.")
        var instance: String?

        func run() async throws {
            let instance = instance
            try await ControlClient.with { client in
                for one in try await client.snapshot().instances where instance ?? one.id.text == one.id.text {
                    for key in one.keys {
                        print(
                            "\(one.id)\t\(key.id)\t\(Purpose(key.purpose))\t\(LimitArguments.words(key.limits))\tcreated "
                                + key.createdAt.text)
                    }
                }
            }
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Ends a key: what it signs is refused from then on.")
        @Argument(help: "The key.")
        var key: String
        @Option(help: "The instance.")
        var instance: String

        func run() async throws {
            let name = Mss_Bus_V1_KeyName.with {
                $0.instanceID = instance
                $0.keyID = key
            }
            try await ControlClient.with { client in
                try await client.change("revoke \(name.keyID)", decidesCallers: true) { $0.revokeKey = name }
            }
        }
    }

    struct Reseal: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Seals every secret with the newest master key, so that older ones can go.")

        func run() async throws {
            try await ControlClient.with { client in
                try await client.change("reseal", { $0.resealKeys = .init() }) { made in
                    print("sealed anew\t\(made.resealed)")
                }
            }
        }
    }
}
