import ArgumentParser
import Credentials
import Crypto
import Foundation
import SyncModel
import Testing
import ToolSupport

@testable import ControlTool

@Suite("SEC16: passwords and keys of an installation") struct SecretsCommandTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "secrets-\(UUID().uuidString)")

    private func make() throws { try SecretsCommand.parse([folder.path]).run() }

    private func texts() throws -> [String: String] {
        try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil).reduce(into: [:]) {
            $0[$1.lastPathComponent] = try SecretFile.text(of: $1.path)
        }
    }

    @Test("each has a file that only its owner can read; no two are equal") func files() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        try make()
        let texts = try texts()
        let tiers = ["ingest", "writer", "gateway", "validator", "statistics", "console", "notifier", "relay", "tool"]
        let expected =
            tiers.map { "amqp_\($0)" }
            + ["owner", "writer", "statistics", "console", "notifier", "relay"].map { "postgres_\($0)" }
            + ["backend", "device", "callout"].map { "sealing_\($0)" }
            + ["master_keys", "console_sealing_key", "definitions.json"]
        #expect(Set(texts.keys) == Set(expected))
        #expect(Set(texts.values).count == texts.count && texts.values.allSatisfy { $0.count >= 44 })
        for name in texts.keys {
            let attributes = try FileManager.default.attributesOfItem(atPath: folder.appending(path: name).path)
            #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
        }
        for purpose in AppKey.Purpose.allCases {
            _ = try SealingRing(text: try #require(texts["sealing_\(purpose.word)"]), for: purpose)
        }
    }

    @Test("existing files stay, and derived files are made again") func again() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        try make()
        let before = try texts()
        let masters = "new-1 \(Data(repeating: 7, count: 32).base64EncodedString())\n\(before["master_keys"] ?? "")"
        try masters.write(to: folder.appending(path: "master_keys"), atomically: true, encoding: .utf8)
        try "a word of mine\n".write(to: folder.appending(path: "amqp_tool"), atomically: true, encoding: .utf8)
        try FileManager.default.removeItem(at: folder.appending(path: "amqp_ingest"))
        try make()
        let after = try texts()
        let changed = before.keys.filter { before[$0] != after[$0] }
        #expect(
            Set(changed) == [
                "master_keys", "amqp_tool", "amqp_ingest", "sealing_backend", "sealing_device", "sealing_callout",
                "definitions.json",
            ])
        #expect(after["sealing_device"] == (try KeyRing(text: masters).sealing(for: .device).text))
        #expect(try passwordHashes(after).allSatisfy { user, hash in isHash(hash, of: after["amqp_\(user)"] ?? "") })
    }

    @Test("an empty file is not a password") func empty() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        try make()
        try "\n".write(to: folder.appending(path: "amqp_tool"), atomically: true, encoding: .utf8)
        let error = #expect(throws: (any Error).self) { try make() }
        #expect(error.map { "\($0)" }?.contains("amqp_tool is empty") == true)
    }

    private func passwordHashes(_ texts: [String: String]) throws -> [String: String] {
        struct Definitions: Decodable {
            struct User: Decodable {
                enum CodingKeys: String, CodingKey {
                    case name
                    case passwordHash = "password_hash"
                }
                let name, passwordHash: String
            }
            let users: [User]
        }
        let text = try #require(texts["definitions.json"])
        let users = try JSONDecoder().decode(Definitions.self, from: Data(text.utf8)).users
        #expect(users.count == 9)
        return Dictionary(uniqueKeysWithValues: users.map { ($0.name, $0.passwordHash) })
    }

    /// Whether a text is RabbitMQ's hash of a password: four bytes of salt, then SHA-256 of salt and password.
    private func isHash(_ hash: String, of password: String) -> Bool {
        guard let bytes = Data(base64Encoded: hash) else { return false }
        return Data(SHA256.hash(data: bytes.prefix(4) + Data(password.utf8))) == bytes.dropFirst(4)
    }
}
