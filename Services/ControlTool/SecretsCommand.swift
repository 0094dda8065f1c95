import ArgumentParser
import BusMessages
import Credentials
import Crypto
import Foundation
import Glibc
import SyncModel
import SyncStore

/// `mssctl secrets`: the passwords and keys of an installation, a file each (reliability SEC10, SEC16).
struct SecretsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "secrets",
        abstract: "Makes the passwords and keys of an installation, a file each.",
        discussion: """
            What is there stays; put a file of your own in its place before. What follows from others is made anew \
            each time: sealing_backend, sealing_device and sealing_callout from master_keys, and definitions.json, \
            which RabbitMQ loads when it starts (load_definitions: a user for each tier with the least rights, \
            exchanges and durable queues), from the passwords amqp_….
            """)

    @Argument(help: "The folder; it is made if need be.")
    var folder: String

    @Option(help: "RabbitMQ's virtual host.")
    var vhost = "/"

    @Flag(help: "The durable queues are quorum queues, for a cluster of RabbitMQ; decide before its first start.")
    var quorum = false

    func run() throws {
        umask(0o077)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for login in ["owner"] + TierLogins.tiers { try keep("postgres_\(login)") { Self.password() } }
        var hashes: [BusTier: String] = [:]
        for tier in BusTier.allCases {
            let name = "amqp_\(tier.rawValue)"
            try keep(name) { Self.password() }
            hashes[tier] = Self.hash(of: try text(of: name))
        }
        // People's second factors rest under it.
        try keep("console_sealing_key") { Self.key() }
        try keep("master_keys") { "\(Date.now.formatted(.iso8601.year().month()))-1 \(Self.key())" }
        let masters = try KeyRing(text: try text(of: "master_keys"))
        for purpose in AppKey.Purpose.allCases {
            try write(masters.sealing(for: purpose).text, to: "sealing_\(purpose.word)")
        }
        let definitions = try BrokerDefinitions(
            virtualHost: vhost, passwordHashes: hashes, isReplicated: quorum
        ).json()
        try write(String(decoding: definitions, as: UTF8.self), to: "definitions.json")
        print("the secrets are in \(folder): keep a copy of master_keys, without which tenants' keys are lost")
    }

    private static func password() -> String { HexText.of(RandomBytes.make(24)) }

    private static func key() -> String { Data(RandomBytes.make(32)).base64EncodedString() }

    /// RabbitMQ: passwords, "computing password hash".
    private static func hash(of password: String) -> String {
        let salt = Data(RandomBytes.make(4))
        return (salt + SHA256.hash(data: salt + Data(password.utf8))).base64EncodedString()
    }

    // MARK: Files

    private func path(_ name: String) -> String { "\(folder)/\(name)" }

    /// As the processes read it.
    ///
    /// - Throws: `ValidationError` when there is nothing in it.
    private func text(of name: String) throws -> String {
        let text = try SecretFile.text(of: path(name))
        guard !text.isEmpty else { throw ValidationError("\(path(name)) is empty; remove it, and it is made anew") }
        return text
    }

    private func keep(_ name: String, _ make: () -> String) throws {
        guard !FileManager.default.fileExists(atPath: path(name)) else { return }
        try write(make(), to: name)
    }

    /// A file that is there is whole.
    private func write(_ text: String, to name: String) throws {
        let new = path(name) + ".new"
        guard FileManager.default.createFile(atPath: new, contents: Data("\(text)\n".utf8)),
            rename(new, path(name)) == 0
        else { throw ValidationError("\(path(name)) cannot be written") }
    }
}
