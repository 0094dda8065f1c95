import Foundation
import TestSupport

/// Which processes a stack has, with what settings, and the steps that make its servers.
struct StackPlan: Sendable {
    let servers: [Supervised]
    let services: [Supervised]
    let apis: [Int]
    let gateways: [Int]
    let healthPorts: [Int]
    let certificateAuthority: String
    /// Where the canary run's tenant listens, which the validator may call.
    let canaryTenantPort: Int
    private let root: URL
    private let folder: URL
    let postgresPort: Int
    /// Where bad tenants lead to, and nothing may arrive.
    let forbiddenPort: Int
    let badTenants: BadTenants
    let rabbitPort: Int
    private let toolEnvironment: [String: String]

    /// Ports that a stack takes.
    static let portCount = 25 + BadTenants.ports

    /// Bad tenants on the last ports.
    static func badTenants(_ ports: [Int]) async throws -> BadTenants {
        try await BadTenants(port: ports[25], forbidden: ports[24])
    }

    init(root: URL, folder: URL, ports: [Int], badTenants: BadTenants) {
        self.root = root
        self.folder = folder
        // RabbitMQ takes the two ports after its own.
        let rabbitPort = ports[0]
        self.rabbitPort = rabbitPort
        postgresPort = ports[3]
        let tenantPort = ports[4]
        canaryTenantPort = ports[23]
        // The database is the default one, without passwords, and neither server has TLS.
        let base = [
            "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "", "HOME": folder.path,
            "MSS_ENVIRONMENT": "development",
        ]
        let secrets = folder.appending(path: "secrets")
        func amqp(_ user: String) -> [String: String] {
            [
                "MSS_AMQP_PORT": "\(rabbitPort)", "MSS_AMQP_USER": user,
                "MSS_AMQP_PASSWORD_FILE": secrets.appending(path: "amqp_\(user)").path,
            ]
        }
        let postgres = ["MSS_POSTGRES_PORT": "\(postgresPort)"]
        let keys = ["MSS_MASTER_KEYS": "test-1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]
        toolEnvironment = base.merging(amqp("tool")) { $1 }.merging(postgres) { $1 }
        let scripts = root.appending(path: "deploy/scripts")
        var servers = [
            Supervised(
                name: "postgres", executable: scripts.appending(path: "postgres.sh"),
                arguments: ["run", folder.appending(path: "postgres").path], environment: base,
                log: folder.appending(path: "postgres.log")),
            Supervised(
                name: "rabbitmq", executable: scripts.appending(path: "rabbitmq.sh"),
                arguments: ["run", folder.appending(path: "rabbitmq").path], environment: base,
                log: folder.appending(path: "rabbitmq.log")),
            Supervised(
                name: "tenant", executable: URL(fileURLWithPath: "/usr/bin/env"),
                arguments: ["python3", root.appending(path: "deploy/demo/tenant.py").path, "--port", "\(tenantPort)"],
                environment: base, log: folder.appending(path: "tenant.log")),
        ]
        forbiddenPort = ports[24]
        self.badTenants = badTenants
        servers.append(Self.badTenants(ports, folder, base))
        self.servers = servers
        var services: [Supervised] = []
        var healthPorts: [Int] = []
        var next = ports[5...].makeIterator()
        func port() -> Int { next.next() ?? 0 }
        func add(_ name: String, _ executable: String, _ settings: [String: String]) {
            healthPorts.append(port())
            // writer-1 is the writer's user.
            let tier = String(name.prefix { $0 != "-" })
            let environment = base.merging(amqp(tier)) { $1 }.merging(settings) { $1 }
                .merging(["MSS_HEALTH_PORT": "\(healthPorts.last ?? 0)", "MSS_LOG_FORMAT": "json"]) { $1 }
            services.append(
                Supervised(
                    name: name, executable: Self.binaries.appending(path: executable), environment: environment,
                    log: folder.appending(path: "\(name).log")))
        }
        let (apis, gateways) = ([port(), port()], [port(), port()])
        for number in 0..<2 {
            add(
                "writer-\(number)", "mss-oplog-writer",
                postgres.merging(["MSS_POSTGRES_USER": "writer"]) { $1 }.merging(keys) { $1 })
            add("ingest-\(number)", "mss-ingest", ["MSS_INGEST_PORT": "\(apis[number])"].merging(keys) { $1 })
            add(
                "gateway-\(number)", "mss-gateway",
                [
                    "MSS_GATEWAY_ID": "gateway-\(number)", "MSS_GATEWAY_PORT": "\(gateways[number])",
                    "MSS_GATEWAY_CERTIFICATE_FILE": folder.appending(path: "tls/server.pem").path,
                    "MSS_GATEWAY_PRIVATE_KEY_FILE": folder.appending(path: "tls/server.key").path,
                    // All devices come from one address, and at once.
                    "MSS_GATEWAY_SOURCE_CONNECTIONS_PER_SECOND": "100000",
                    "MSS_GATEWAY_HANDSHAKES_PER_SECOND": "100000", "MSS_GATEWAY_APP_CONNECTS_PER_SECOND": "100000",
                    // For the simple device of D14; devices of other tests keep to their own ten seconds.
                    "MSS_GATEWAY_FIRST_RESEND_SECONDS": "1",
                ].merging(keys) { $1 })
        }
        add(
            "validator", "mss-session-validator",
            [
                "MSS_VALIDATOR_ALLOWED_HOSTS":
                    "http://127.0.0.1:\(tenantPort),http://127.0.0.1:\(ports[23]),\(badTenants.allow)",
                "MSS_VALIDATOR_AUTHORITY_FILE": folder.appending(path: "tls/ca.pem").path,
                "MSS_VALIDATOR_LOOPBACK": "development",
            ].merging(keys) { $1 })
        add("statistics", "mss-statistics", postgres.merging(["MSS_POSTGRES_USER": "statistics"]) { $1 })
        (self.services, self.healthPorts, self.apis, self.gateways) = (services, healthPorts, apis, gateways)
        certificateAuthority = folder.appending(path: "tls/ca.pem").path
        self.tenantPort = tenantPort
    }

    let tenantPort: Int

    /// Where the build put the executables: beside the test bundle.
    static var binaries: URL {
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    }

    func makeServersAndCertificate() async throws {
        let scripts = root.appending(path: "deploy/scripts")
        try await run(
            scripts.appending(path: "postgres.sh"),
            ["init", folder.appending(path: "postgres").path, "\(postgresPort)"])
        let secrets = folder.appending(path: "secrets")
        try FileManager.default.createDirectory(at: secrets, withIntermediateDirectories: true)
        for tier in ["ingest", "writer", "gateway", "validator", "statistics", "tool"] {
            try UUID().uuidString.write(
                to: secrets.appending(path: "amqp_\(tier)"), atomically: true, encoding: .utf8)
        }
        let tool = Self.binaries.appending(path: "mssctl")
        let printed = try await Command.run(
            tool, ["broker-definitions", "--passwords", secrets.path], environment: toolEnvironment)
        guard printed.status == 0 else { throw Failure("mssctl broker-definitions: \(printed.output)") }
        let definitions = folder.appending(path: "definitions.json")
        try printed.output.write(to: definitions, atomically: true, encoding: .utf8)
        try await run(
            scripts.appending(path: "rabbitmq.sh"),
            ["init", folder.appending(path: "rabbitmq").path, "\(rabbitPort)", definitions.path])
        try await makeCertificates()
    }

    /// The password of a tier's user at the broker.
    func password(of tier: String) throws -> String {
        try String(contentsOf: folder.appending(path: "secrets/amqp_\(tier)"), encoding: .utf8)
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
        try await run(Self.binaries.appending(path: "mssctl"), ["migrate"])
        let owner = ["PGHOST": "127.0.0.1", "PGPORT": "\(postgresPort)", "PGUSER": "mss", "PGDATABASE": "mss"]
        try await run(scripts("postgres-logins.sh"), [], adding: owner)
    }

    /// The process of the bad tenants.
    private static func badTenants(_ ports: [Int], _ folder: URL, _ environment: [String: String]) -> Supervised {
        let command = BadTenants.command(port: ports[25], forbidden: ports[24], tls: folder.appending(path: "tls"))
        return Supervised(
            name: "bad-tenants", executable: command.executable, arguments: command.arguments, environment: environment,
            log: folder.appending(path: "bad-tenants.log"))
    }

    /// The demo's control data, with the tenant where this stack has it.
    func apply() async throws {
        let demo = try String(contentsOf: root.appending(path: "deploy/demo/demo_app.json"), encoding: .utf8)
        let file = folder.appending(path: "demo_app.json")
        try demo.replacing("127.0.0.1:7190", with: "127.0.0.1:\(tenantPort)")
            .write(to: file, atomically: true, encoding: .utf8)
        try await run(Self.binaries.appending(path: "mssctl"), ["apply", file.path])
        let global = folder.appending(path: "global_app.json")
        try Self.globalControlData.write(to: global, atomically: true, encoding: .utf8)
        try await run(Self.binaries.appending(path: "mssctl"), ["apply", global.path])
        let gateway = folder.appending(path: "gateway_app.json")
        try Self.mobileGatewayControlData(tenantPort: tenantPort)
            .write(to: gateway, atomically: true, encoding: .utf8)
        try await run(Self.binaries.appending(path: "mssctl"), ["apply", gateway.path])
    }

    /// An instance whose tenant is asked through a mobile gateway.
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

    /// Global configurations, and one to see that devices are there.
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

    private func run(_ executable: URL, _ arguments: [String], adding more: [String: String] = [:]) async throws {
        let environment = toolEnvironment.merging(more) { $1 }
        let outcome = try await Command.run(executable, arguments, environment: environment)
        guard outcome.status == 0 else {
            throw Failure("\(executable.lastPathComponent) \(arguments): \(outcome.output)")
        }
    }
}
