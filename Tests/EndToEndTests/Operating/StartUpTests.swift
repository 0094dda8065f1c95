import ChildProcesses
import Foundation
import Glibc
import TestSupport
import Testing

/// The checks that the binaries make before they serve; no servers are needed.
@Suite("Starting up")
struct StartUpTests {
    private static let services = [
        "mss-ingest", "mss-oplog-writer", "mss-gateway", "mss-session-validator", "mss-statistics",
        "mss-console", "mss-notifier", "mss-relay",
    ]

    private static let haveDatabase = [
        "mss-oplog-writer", "mss-statistics", "mss-console", "mss-notifier", "mss-relay",
    ]

    /// The settings that a binary requires, except for the users of the servers.
    private static func own(_ binary: String, _ certificates: TestCertificates) throws -> [String: String] {
        switch binary {
        case "mss-gateway":
            return [
                "MSS_GATEWAY_ID": "g", "MSS_GATEWAY_CERTIFICATE_FILE": certificates.certificateFile(.server),
                "MSS_GATEWAY_PRIVATE_KEY_FILE": certificates.privateKeyFile(.server),
            ]
        case "mss-notifier":
            let apps = certificates.certificateFile(.server) + ".apps.json"
            try #"{"apps": []}"#.write(toFile: apps, atomically: true, encoding: .utf8)
            return ["MSS_NOTIFIER_APPS_FILE": apps]
        default: return [:]
        }
    }

    private func run(
        _ binary: String, _ arguments: [String] = [], _ settings: [String: String]
    ) async throws -> (status: Int32, output: String) {
        try await Command.run(StackPlan.binaries.appending(path: binary), arguments, environment: settings)
    }

    @Test(
        "SEC16: with default settings every process exits with 78 and names the missing settings", arguments: services)
    func defaults(binary: String) async throws {
        try await TestCertificates.with { certificates in
            var settings = try Self.own(binary, certificates).merging(["MSS_HEALTH_PORT": "1"]) { $1 }
            let hasDatabase = Self.haveDatabase.contains(binary)
            let bare = try await run(binary, [], settings)
            #expect(bare.status == 78 && bare.output.contains("MSS_AMQP_USER: it is required"))
            #expect(bare.output.contains("MSS_POSTGRES_USER: it is required") == hasDatabase)
            settings["MSS_AMQP_USER"] = "guest"
            if hasDatabase { settings["MSS_POSTGRES_USER"] = "writer" }
            let named = try await run(binary, [], settings)
            #expect(named.status == 78 && named.output.contains("MSS_AMQP_USER: guest"))
            #expect(named.output.contains("MSS_AMQP_PASSWORD_FILE"))
            #expect(named.output.contains("MSS_POSTGRES_PASSWORD_FILE") == hasDatabase)
            settings["MSS_ENVIRONMENT"] = "development"
            #expect(try await run(binary, ["config", "check"], settings).status == 0)
        }
    }

    @Test("a process that is told to end while its servers are unreachable exits with 0", arguments: services)
    func endsEarly(binary: String) async throws {
        try await TestCertificates.with { certificates in
            let ports = try FreePorts.find(3)
            var settings = try Self.own(binary, certificates).merging([
                "MSS_ENVIRONMENT": "development", "MSS_HEALTH_PORT": "\(ports[0])", "MSS_AMQP_PORT": "\(ports[1])",
                "MSS_AMQP_USER": "guest",
            ]) { $1 }
            if Self.haveDatabase.contains(binary) {
                settings["MSS_POSTGRES_USER"] = "writer"
                settings["MSS_POSTGRES_PORT"] = "\(ports[1])"
            }
            let listens = ["mss-ingest": "MSS_INGEST_PORT", "mss-console": "MSS_CONSOLE_PORT"]
            if let port = listens[binary] { settings[port] = "\(ports[2])" }
            let output = certificates.folder.appending(path: "output")
            let process = try ChildProcess(
                [StackPlan.binaries.appending(path: binary).path], environment: settings, output: .inherited,
                errors: .file(output))
            defer { process.signal(SIGTERM) }
            func printed() throws -> String { try String(contentsOf: output, encoding: .utf8) }
            try await eventually("\(binary) looks for the broker", within: .seconds(20)) {
                try printed().contains("no connection to RabbitMQ")
            }
            process.signal(SIGTERM)
            try await eventually("\(binary) ends", within: .seconds(15)) { process.status != nil }
            let log = try printed()
            #expect(process.status == 0, "\(log)")
        }
    }

    @Test(
        "SEC16: a tier starts with the sealing keys of its purpose alone, and refuses the master keys",
        arguments: ["mss-ingest": "backend", "mss-gateway": "device", "mss-session-validator": "callout"])
    func sealingKeys(binary: String, purpose: String) async throws {
        func ring(_ purpose: String) async throws -> String {
            let made = try await run("mssctl", ["key", "ring", "--purpose", purpose], StackSettings.masterKeys)
            #expect(made.status == 0, "\(made.output)")
            return made.output
        }
        try await TestCertificates.with { certificates in
            let settings = try Self.own(binary, certificates).merging([
                "MSS_HEALTH_PORT": "1", "MSS_ENVIRONMENT": "development", "MSS_AMQP_USER": "u",
            ]) { $1 }
            func check(_ keys: [String: String]) async throws -> (status: Int32, output: String) {
                try await run(binary, ["config", "check"], settings.merging(keys) { $1 })
            }
            let masters = try await check(StackSettings.masterKeys)
            #expect(masters.status == 78 && masters.output.contains("MSS_MASTER_KEYS: this process has no such"))
            for other in ["backend", "device", "callout"] where other != purpose {
                let refused = try await check(["MSS_SEALING_KEYS": try await ring(other)])
                #expect(refused.status == 78 && refused.output.contains("mssctl key ring --purpose \(purpose)"))
            }
            let own = try await check(["MSS_SEALING_KEYS": try await ring(purpose)])
            #expect(own.status == 0, "\(own.output)")
        }
    }

    @Test("SEC16: the tool cannot leave a core dump either") func toolCoreDumps() async throws {
        let process = try ChildProcess(
            [
                StackPlan.binaries.appending(path: "mssctl").path, "revoke", "--instance", "i", "--user", "u",
                "--session-file", "-",
            ], environment: [:], takesInput: true, output: .discarded)
        defer { process.signal(SIGTERM) }
        // The tool waits for the session on its standard input.
        try await eventually("the tool has switched them off", within: .seconds(10)) {
            let limits = try String(contentsOfFile: "/proc/\(process.identifier)/limits", encoding: .utf8)
            let line = limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") }
            return line?.split(separator: " ").suffix(3) == ["0", "0", "bytes"]
        }
    }

    @Test("SEC1: a gateway does not start with an expired certificate") func expired() async throws {
        try await TestCertificates.with { certificates in
            let outcome = try await run(
                "mss-gateway", ["config", "check"],
                [
                    "MSS_HEALTH_PORT": "1", "MSS_GATEWAY_ID": "g", "MSS_ENVIRONMENT": "development",
                    "MSS_AMQP_USER": "gateway",
                    "MSS_GATEWAY_CERTIFICATE_FILE": certificates.certificateFile(.expired),
                    "MSS_GATEWAY_PRIVATE_KEY_FILE": certificates.privateKeyFile(.expired),
                ])
            #expect(outcome.status == 78 && outcome.output.contains("renew it"))
        }
    }

    @Test(
        "SEC12: a validator does not start with an unreadable file of authorities, and names the setting",
        arguments: ["/nowhere/ca.pem", #filePath])
    func authorities(file: String) async throws {
        let settings = [
            "MSS_HEALTH_PORT": "1", "MSS_ENVIRONMENT": "development", "MSS_AMQP_USER": "guest",
            "MSS_AMQP_PASSWORD": "guest", "MSS_VALIDATOR_AUTHORITY_FILE": file,
        ]
        for arguments in [[], ["config", "check"]] {
            let outcome = try await run("mss-session-validator", arguments, settings)
            #expect(outcome.status == 78 && outcome.output.contains("MSS_VALIDATOR_AUTHORITY_FILE: \(file)"))
        }
    }

    @Test("SEC1: the tool sends no password over the network in the clear") func tool() async throws {
        let outcome = try await run(
            "mssctl", ["migrate"],
            [
                "MSS_POSTGRES_HOST": "db.example", "MSS_POSTGRES_USER": "owner",
                "MSS_POSTGRES_PASSWORD": "7d793037a0760186",
            ])
        #expect(outcome.status != 0 && outcome.output.contains("MSS_POSTGRES_TLS"))
    }
}
