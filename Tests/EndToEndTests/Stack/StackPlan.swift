import Foundation
import TestSupport

/// The processes of a stack with their settings, and the steps that create its servers.
struct StackPlan: Sendable {
    let settings: StackSettings
    let servers: [Supervised]
    let services: [Supervised]
    let healthPorts: [Int]
    let badTenants: BadTenants
    private let root: URL

    var apis: [Int] { settings.apis }
    var gateways: [Int] { settings.gateways }
    var certificateAuthority: String { folder.appending(path: "tls/ca.pem").path }
    private var folder: URL { settings.folder }
    private var toolEnvironment: [String: String] {
        [settings.amqp("tool"), settings.postgres(), StackSettings.stores].reduce(settings.base) {
            $0.merging($1) { $1 }
        }
    }

    /// The number of ports that a stack needs.
    static let portCount = 27 + BadTenants.ports

    init(root: URL, folder: URL, ports: [Int]) async throws {
        self.root = root
        let settings = StackSettings(folder: folder, ports: ports, rings: try await Self.rings())
        self.settings = settings
        badTenants = try await BadTenants(port: settings.badTenantsPort, forbidden: settings.forbiddenPort)
        servers = Self.servers(settings, root: root)
        var services: [Supervised] = []
        func add(_ name: String, _ executable: String, _ own: [String: String]) {
            // For example, `writer-1` has the user of the writer.
            let tier = String(name.prefix { $0 != "-" })
            let health = ["MSS_HEALTH_PORT": "\(settings.healthPorts[services.count])", "MSS_LOG_FORMAT": "json"]
            services.append(
                Supervised(
                    name: name, executable: Self.binaries.appending(path: executable),
                    environment: [settings.amqp(tier), settings.traces, own, health].reduce(settings.base) {
                        $0.merging($1) { $1 }
                    },
                    log: folder.appending(path: "\(name).log"), host: TestHost(name)))
        }
        for number in 0..<2 {
            add(
                "writer-\(number)", "mss-oplog-writer",
                [StackSettings.stores, StackSettings.masterKeys].reduce(settings.postgres("writer")) {
                    $0.merging($1) { $1 }
                })
            add(
                "ingest-\(number)", "mss-ingest",
                ["MSS_INGEST_PORT": "\(settings.apis[number])"].merging(settings.sealingKeys("backend")) { $1 })
            add("gateway-\(number)", "mss-gateway", settings.gateway(number))
            add("relay-\(number)", "mss-relay", settings.relay)
        }
        add("validator", "mss-session-validator", settings.validator(allowed: badTenants.allow))
        add("statistics", "mss-statistics", settings.postgres("statistics"))
        add("console", "mss-console", settings.console)
        self.services = services
        healthPorts = Array(settings.healthPorts.prefix(services.count))
    }

    /// The sealing keys that the tool derives from the master keys, by purpose.
    private static func rings() async throws -> [String: String] {
        var rings: [String: String] = [:]
        for purpose in ["backend", "device", "callout"] {
            let printed = try await Command.run(
                binaries.appending(path: "mssctl"), ["key", "ring", "--purpose", purpose],
                environment: StackSettings.masterKeys)
            guard printed.status == 0 else { throw Failure("mssctl key ring: \(printed.output)") }
            rings[purpose] = printed.output
        }
        return rings
    }

    /// PostgreSQL, RabbitMQ, and the tenants, good and bad.
    private static func servers(_ settings: StackSettings, root: URL) -> [Supervised] {
        func server(_ name: String, _ executable: URL, _ arguments: [String], ports: [Int] = []) -> Supervised {
            Supervised(
                name: name, executable: executable, arguments: arguments, environment: settings.base,
                log: settings.folder.appending(path: "\(name).log"), host: ports.isEmpty ? nil : TestHost(name),
                ports: ports)
        }
        let (folder, scripts) = (settings.folder, root.appending(path: "deploy/scripts"))
        let bad = BadTenants.command(
            port: settings.badTenantsPort, forbidden: settings.forbiddenPort, tls: folder.appending(path: "tls"))
        return [
            server(
                "postgres", scripts.appending(path: "postgres.sh"), ["run", folder.appending(path: "postgres").path],
                ports: [settings.postgresPort]),
            server(
                "rabbitmq", scripts.appending(path: "rabbitmq.sh"), ["run", folder.appending(path: "rabbitmq").path],
                ports: Array(settings.rabbitPort..<settings.rabbitPort + 3)),
            server(
                "tenant", URL(fileURLWithPath: "/usr/bin/env"),
                [
                    "python3", root.appending(path: "deploy/demo/tenant.py").path, "--port", "\(settings.tenantPort)",
                ]),
            server(
                "traces", URL(fileURLWithPath: "/usr/bin/env"),
                [
                    "python3", root.appending(path: "Tests/EndToEndTests/trace_collector.py").path, "--port",
                    "\(settings.tracePort)", "--file", folder.appending(path: "traces.jsonl").path,
                ]),
            server("bad-tenants", URL(fileURLWithPath: "/usr/bin/env"), bad),
        ]
    }

    /// The folder of the executables: beside the test bundle.
    static var binaries: URL {
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    }

    /// Returns a notifier with these settings; not started.
    func notifier(_ own: [String: String]) -> Supervised {
        let common = [settings.base, settings.amqp("notifier"), settings.postgres("notifier"), own]
        return Supervised(
            name: "notifier", executable: Self.binaries.appending(path: "mss-notifier"),
            environment: common.reduce(["MSS_LOG_FORMAT": "json"]) { $0.merging($1) { $1 } },
            log: folder.appending(path: "notifier.log"))
    }

    /// Returns a standby of the database for this port; not started.
    func standby(port: Int) async throws -> Supervised {
        let (own, primary) = (folder.appending(path: "standby"), folder.appending(path: "postgres"))
        try await run(
            scripts("postgres.sh"),
            ["standby", own.path, primary.path, TestHost.areSeparate ? "postgres" : "127.0.0.1", "\(port)"])
        return Supervised(
            name: "standby", executable: scripts("postgres.sh"), arguments: ["run", own.path],
            environment: settings.base, log: folder.appending(path: "standby.log"), host: TestHost("standby"),
            ports: [port])
    }

    /// Replaces the database's data by the standby's; neither may run.
    func takeOver() throws {
        let files = FileManager.default
        let data = folder.appending(path: "postgres/data")
        try files.moveItem(at: data, to: folder.appending(path: "postgres/old"))
        try files.moveItem(at: folder.appending(path: "standby/data"), to: data)
        let settings = try FileHandle(forWritingTo: data.appending(path: "postgresql.conf"))
        try settings.seekToEnd()
        try settings.write(
            contentsOf: Data(
                """
                port = \(self.settings.postgresPort)
                unix_socket_directories = '\(folder.appending(path: "postgres/sock").path)'

                """.utf8))
        try settings.close()
    }

    func makeServersAndCertificate() async throws {
        let scripts = root.appending(path: "deploy/scripts")
        try await run(
            scripts.appending(path: "postgres.sh"),
            ["init", folder.appending(path: "postgres").path, "\(settings.postgresPort)"])
        try await run(Self.binaries.appending(path: "mssctl"), ["secrets", secrets.path])
        try await run(
            scripts.appending(path: "rabbitmq.sh"),
            [
                "init", folder.appending(path: "rabbitmq").path, "\(settings.rabbitPort)",
                secrets.appending(path: "definitions.json").path,
            ])
        try await makeCertificates()
        guard TestHost.areSeparate else { return }
        for name in ["postgres", "rabbitmq"] {
            try await run(
                scripts.appending(path: "\(name).sh"),
                ["tls", folder.appending(path: name).path, folder.appending(path: "tls").path])
        }
    }

    /// The folder of passwords and keys of the stack, as `mssctl secrets` creates them.
    private var secrets: URL { folder.appending(path: "secrets") }

    /// The password of a tier's user at the broker.
    func password(of tier: String) throws -> String {
        try String(contentsOf: secrets.appending(path: "amqp_\(tier)"), encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    func makeCertificates() async throws {
        try await run(scripts("certificates.sh"), [folder.appending(path: "tls").path])
    }

    func serversAnswer() async -> Bool {
        let scripts = root.appending(path: "deploy/scripts")
        do {
            try await run(scripts.appending(path: "postgres.sh"), ["ready", folder.appending(path: "postgres").path])
            try await run(scripts.appending(path: "rabbitmq.sh"), ["ready", folder.appending(path: "rabbitmq").path])
            return true
        } catch {
            return false
        }
    }

    func migrate() async throws {
        try await run(
            scripts("postgres.sh"), ["create-database", folder.appending(path: "postgres").path, "mss"])
        try await run(Self.binaries.appending(path: "mssctl"), ["migrate", "--logins", secrets.path])
    }

    /// Applies the demo's control data, with this stack's tenant.
    func apply() async throws {
        let demo = try String(contentsOf: root.appending(path: "deploy/demo/demo_app.json"), encoding: .utf8)
        let file = folder.appending(path: "demo_app.json")
        try demo.replacing("127.0.0.1:7190", with: "127.0.0.1:\(settings.tenantPort)")
            .write(to: file, atomically: true, encoding: .utf8)
        try await run(Self.binaries.appending(path: "mssctl"), ["apply", file.path])
        let global = folder.appending(path: "global_app.json")
        try Self.globalControlData.write(to: global, atomically: true, encoding: .utf8)
        try await run(Self.binaries.appending(path: "mssctl"), ["apply", global.path])
        let gateway = folder.appending(path: "gateway_app.json")
        try Self.mobileGatewayControlData(tenantPort: settings.tenantPort)
            .write(to: gateway, atomically: true, encoding: .utf8)
        try await run(Self.binaries.appending(path: "mssctl"), ["apply", gateway.path])
        let operations = folder.appending(path: "operations_app.json")
        try Self.operationControlData(tenantPort: settings.operationsPort)
            .write(to: operations, atomically: true, encoding: .utf8)
        try await run(Self.binaries.appending(path: "mssctl"), ["apply", operations.path])
        let client = folder.appending(path: "client_app.json")
        try Self.clientControlData(tenantPort: settings.operationsPort)
            .write(to: client, atomically: true, encoding: .utf8)
        try await run(Self.binaries.appending(path: "mssctl"), ["apply", client.path])
    }

    /// An instance whose tenant is called through a mobile gateway.
    private static func mobileGatewayControlData(tenantPort: Int) -> String {
        """
        {
          "instances": [{"instanceId": "\(Stack.mobileGatewayInstance)", "validatorMode": "mgs",
            "validatorUrl": "http://127.0.0.1:\(tenantPort)/mgw.htm", "validatorWrapsBody": true}],
          "configurations": [
            {"instanceId": "\(Stack.mobileGatewayInstance)", "bizType": "TRADE", "description": "",
              "scope": "appointed", "target": "user", "repush": "all", "checkSession": true},
            {"instanceId": "\(Stack.mobileGatewayInstance)", "bizType": "UCHAT", "description": "",
              "scope": "appointed", "target": "user", "repush": "all"}
          ]
        }
        """
    }

    /// An instance whose tenant, played by a test, executes device operations.
    private static func operationControlData(tenantPort: Int) -> String {
        """
        {
          "instances": [{"instanceId": "\(Stack.operationInstance)",
            "relayUrl": "http://127.0.0.1:\(tenantPort)/operations"}],
          "configurations": [
            {"instanceId": "\(Stack.operationInstance)", "bizType": "ORDER", "description": "", "scope": "appointed",
              "target": "user", "repush": "all"}
          ]
        }
        """
    }

    /// An instance whose apps use entities, resources and client services; a test plays their backend.
    private static func clientControlData(tenantPort: Int) -> String {
        let types = ["Incident", "Note", "MSS_BADGES", "MSS_RESOURCES"].map { name in
            """
            {"instanceId": "\(Stack.clientInstance)", "bizType": "\(name)", "description": "", "scope": "appointed",
              "target": "user", "repush": "all"}
            """
        }
        return """
            {
              "instances": [{"instanceId": "\(Stack.clientInstance)",
                "relayUrl": "http://127.0.0.1:\(tenantPort)/operations"}],
              "configurations": [
                \(types.joined(separator: ",\n")),
                {"instanceId": "\(Stack.clientInstance)", "bizType": "MSS_SWITCHES", "description": "",
                  "scope": "global", "target": "device", "repush": 100, "immediate": true}
              ]
            }
            """
    }

    /// Global configurations, and an appointed one for markers.
    private static let globalControlData = """
        {
          "instances": [{"instanceId": "\(Stack.globalInstance)", "retentionDays": 2}],
          "configurations": [
            {"instanceId": "\(Stack.globalInstance)", "bizType": "UCHAT", "description": "", "scope": "appointed",
              "target": "user", "repush": "all"},
            {"instanceId": "\(Stack.globalInstance)", "bizType": "NEWS", "description": "", "scope": "global",
              "target": "device", "repush": 10},
            {"instanceId": "\(Stack.globalInstance)", "bizType": "NEWS-USER", "description": "", "scope": "global",
              "target": "user", "repush": "all"},
            {"instanceId": "\(Stack.globalInstance)", "bizType": "NEWS-NOW", "description": "", "scope": "global",
              "target": "device", "repush": 10, "immediate": true}
          ]
        }
        """

    /// Runs `mssctl` with this stack's addresses.
    func tool(_ arguments: [String]) async throws -> (status: Int32, output: String) {
        try await Command.run(
            Self.binaries.appending(path: "mssctl"), arguments, environment: toolEnvironment)
    }

    private func scripts(_ name: String) -> URL { root.appending(path: "deploy/scripts").appending(path: name) }

    private func run(_ executable: URL, _ arguments: [String]) async throws {
        let outcome = try await Command.run(executable, arguments, environment: toolEnvironment)
        guard outcome.status == 0 else {
            throw Failure("\(executable.lastPathComponent) \(arguments): \(outcome.output)")
        }
    }
}
