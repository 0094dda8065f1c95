import ArgumentParser
import BusMessages
import Crypto
import Foundation

/// `mssctl broker-definitions`: users, rights, exchanges and durable queues, as RabbitMQ loads them when it starts.
struct BrokerDefinitionsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "broker-definitions",
        abstract: "Prints the definitions that RabbitMQ loads when it starts (load_definitions).",
        discussion: "One user per tier, with the least rights, and what no tier may declare itself.")

    @Option(help: "Folder with each user's password: amqp_ingest, amqp_writer and so on, without a line end.")
    var passwords: String

    @Option(help: "The virtual host.")
    var vhost = "/"

    func run() throws {
        var hashes: [BusTier: String] = [:]
        for tier in BusTier.allCases {
            let path = "\(passwords)/amqp_\(tier.rawValue)"
            guard let password = FileManager.default.contents(atPath: path), !password.isEmpty else {
                throw ValidationError("\(path) is missing or empty; make it with: openssl rand -hex 24 > \(path)")
            }
            // As the processes read their files.
            let text = String(decoding: password, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
            hashes[tier] = Self.hash(of: text)
        }
        let json = try BrokerDefinitions(virtualHost: vhost, passwordHashes: hashes).json()
        FileHandle.standardOutput.write(json + Data("\n".utf8))
    }

    /// RabbitMQ: passwords, "computing password hash".
    private static func hash(of password: String) -> String {
        let salt = Data((0..<4).map { _ in UInt8.random(in: .min ... .max) })
        return (salt + SHA256.hash(data: salt + Data(password.utf8))).base64EncodedString()
    }
}
