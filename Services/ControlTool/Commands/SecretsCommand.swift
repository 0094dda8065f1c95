import ArgumentParser
import BusMessages
import Credentials
import Crypto
import Foundation
import Glibc
import SyncModel
import SyncStore
import ToolSupport

/// `mssctl secrets`: the passwords and keys of an installation, one file each (SEC10, SEC16).
struct SecretsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "secrets",
        abstract: "Creates the passwords and keys of an installation, one file each.",
        discussion: """
            Existing files are kept, so put your own files there first. Derived files are written again each time: \
            sealing_backend, sealing_device and sealing_callout from master_keys, and definitions.json from the \
            passwords amqp_…. RabbitMQ loads definitions.json at its start (load_definitions). It contains a user with \
            least privileges for each tier, exchanges and durable queues.
            """)

    @Argument(help: "The folder, which is created if it is missing.")
    var folder: String

    @Option(help: "Virtual host of RabbitMQ.")
    var vhost = "/"

    @Flag(help: "Use quorum queues for a RabbitMQ cluster; decide before its first start.")
    var quorum = false

    func run() throws {
        umask(0o077)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for login in ["owner"] + TierLogins.tiers { try createIfMissing("postgres_\(login)") { Self.password() } }
        var hashes: [BusTier: String] = [:]
        for tier in BusTier.allCases {
            let name = "amqp_\(tier.rawValue)"
            try createIfMissing(name) { Self.password() }
            hashes[tier] = Self.hash(of: try text(of: name))
        }
        // Seals the second factors of the console's accounts.
        try createIfMissing("console_sealing_key") { Self.key() }
        try createIfMissing("master_keys") { "\(Date.now.formatted(.iso8601.year().month()))-1 \(Self.key())" }
        let masters = try KeyRing(text: try text(of: "master_keys"))
        for purpose in AppKey.Purpose.allCases {
            try write(masters.sealing(for: purpose).text, to: "sealing_\(purpose.word)")
        }
        let definitions = try BrokerDefinitions(
            virtualHost: vhost, passwordHashes: hashes, isReplicated: quorum
        ).json()
        try write(String(decoding: definitions, as: UTF8.self), to: "definitions.json")
        print("the secrets are in \(folder): back up master_keys, without it the keys of instances are lost")
    }

    private static func password() -> String { HexText.of(RandomBytes.make(24)) }

    private static func key() -> String { Data(RandomBytes.make(32)).base64EncodedString() }

    /// See RabbitMQ, passwords, "computing password hash".
    private static func hash(of password: String) -> String {
        let salt = Data(RandomBytes.make(4))
        return (salt + SHA256.hash(data: salt + Data(password.utf8))).base64EncodedString()
    }

    // MARK: Files

    private func path(_ name: String) -> String { "\(folder)/\(name)" }

    /// The text of a file, as the processes read it.
    ///
    /// - Throws: `ValidationError` if the file is empty.
    private func text(of name: String) throws -> String {
        let text = try SecretFile.text(of: path(name))
        guard !text.isEmpty else {
            throw ValidationError("\(path(name)) is empty: remove it, and run the command again")
        }
        return text
    }

    private func createIfMissing(_ name: String, _ make: () -> String) throws {
        guard !FileManager.default.fileExists(atPath: path(name)) else { return }
        try write(make(), to: name)
    }

    /// Renames a complete file into place, so that no partial file is visible.
    private func write(_ text: String, to name: String) throws {
        let new = path(name) + ".new"
        guard FileManager.default.createFile(atPath: new, contents: Data("\(text)\n".utf8)),
            rename(new, path(name)) == 0
        else { throw ValidationError("cannot write \(path(name))") }
    }
}
