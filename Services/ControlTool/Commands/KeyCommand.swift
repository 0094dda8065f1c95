import ArgumentParser
import BusMessages
import Credentials
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel
import ToolSupport

/// `mssctl key`: the keys that sign requests of an instance and requests to its tenant (H9, C8).
struct KeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key", abstract: "Creates, lists and revokes the keys of instances.",
        discussion: """
            An instance has at most \(Limits.liveKeys) live keys per purpose. To rotate a key, create the second one, \
            use it, and revoke the first. \(ToolSettings.amqpHint)
            """,
        subcommands: [Create.self, List.self, Revoke.self, Reseal.self, KeyRingCommand.self])

    /// The requests that a key signs.
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
            abstract: "Creates a key and prints its secret in Base64, only this time.")
        @Option(help: "The instance.")
        var instance: String
        @Option(help: "backend: signs API calls; device: signs connects; callout: signs requests to the tenant.")
        var purpose: Purpose
        @OptionGroup var limits: LimitArguments
        @Option(help: "For callout: file with the tenant's own secret in Base64; - for standard input.")
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
                // Not repeated, because only the first reply contains the secret. The command prints it before any
                // later failure.
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

    /// The fault of a callout secret for this form of requests, after Base64 decoding. The value is nil if it is valid.
    static func fault(of secret: Data, signing form: ValidatorForm) -> String? {
        guard form != .http, String(data: secret, encoding: .utf8) == nil else { return nil }
        return "the secret is not text after Base64 decoding: encode the app's secret at the mobile gateway in Base64 "
            + "(printf %s SECRET | base64)"
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "One line for each live key, without its secret.")
        @Option(help: "Only this instance.")
        var instance: String?

        func run() async throws {
            let instance = instance
            try await ControlClient.with { client in
                for one in try await client.snapshot().instances where instance ?? one.id.text == one.id.text {
                    for key in one.keys {
                        print(
                            "\(one.id)\t\(key.id)\t\(Purpose(key.purpose))\t"
                                + "\(LimitArguments.text(of: key.limits))\tcreated \(key.createdAt.text)")
                    }
                }
            }
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revokes a key: its signatures are refused from then on.")
        @Argument(help: "Key id.")
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
            abstract: "Seals every secret with the newest master key, so that older master keys can be removed.")

        func run() async throws {
            try await ControlClient.with { client in
                try await client.change("reseal", { $0.resealKeys = .init() }) { made in
                    print("sealed anew\t\(made.resealed)")
                }
            }
        }
    }
}

/// `mssctl key ring`: derives the sealing keys of one tier from the master keys, so that the tier can open only the
/// secrets of its purpose (SEC16).
struct KeyRingCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ring",
        abstract: "Prints MSS_SEALING_KEYS for a tier. The output is secret.",
        discussion: """
            Derives the keys from the master keys in MSS_MASTER_KEYS or MSS_MASTER_KEYS_FILE, without a server. \
            backend is for ingests, device for gateways, callout for validators.
            """)

    @Option(help: "Purpose of the secrets: backend, device or callout.")
    var purpose: KeyCommand.Purpose

    func run() throws {
        let masters = try ToolSettings.read([KeyRingSetting.masters.erased])[KeyRingSetting.masters]
        guard !masters.isEmpty else { throw ValidationError("no master keys: set MSS_MASTER_KEYS_FILE") }
        print(masters.sealing(for: purpose.model).text)
    }
}

/// Options for the limits of calls.
struct LimitArguments: ParsableArguments {
    @Option(help: "Calls per second at each ingest; 0: no limit.")
    var requestsPerSecond: Int?
    @Option(help: "Pushes per day (UTC) over all ingests; 0: no limit.")
    var pushesPerDay: Int?

    func validate() throws {
        if let fault = over(KeyLimits()).fault { throw ValidationError(fault) }
    }

    /// The limits with these options. A missing option keeps the limit.
    func over(_ limits: KeyLimits) -> KeyLimits {
        KeyLimits(
            requestsPerSecond: requestsPerSecond.map { $0 == 0 ? nil : $0 } ?? limits.requestsPerSecond,
            pushesPerDay: pushesPerDay.map { $0 == 0 ? nil : $0 } ?? limits.pushesPerDay)
    }

    /// The limits as text.
    static func text(of limits: KeyLimits) -> String {
        let calls = limits.requestsPerSecond.map { "\($0) calls/s" }
        let pushes = limits.pushesPerDay.map { "\($0) pushes/day" }
        let words = [calls, pushes].compactMap { $0 }
        return words.isEmpty ? "no limits" : words.joined(separator: ", ")
    }
}
