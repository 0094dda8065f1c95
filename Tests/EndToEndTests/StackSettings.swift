import Foundation

/// The settings of a stack's processes: which port is whose, and what each process is told.
struct StackSettings: Sendable {
    let folder: URL
    let ports: [Int]
    /// What the tool made of the master keys for each purpose.
    let rings: [String: String]

    // RabbitMQ takes the two ports after its own.
    var rabbitPort: Int { ports[0] }
    var postgresPort: Int { ports[3] }
    var tenantPort: Int { ports[4] }
    var apis: [Int] { [ports[5], ports[6]] }
    var gateways: [Int] { [ports[7], ports[8]] }
    /// Of health and metrics, in the order in which the processes are named.
    var healthPorts: [Int] { Array(ports[9..<22]) }
    /// Where a test's tenant takes operations, which relays may call.
    var operationsPort: Int { ports[22] }
    /// Where the canary run's tenant listens, which the validator may call.
    var canaryTenantPort: Int { ports[23] }
    /// Where bad tenants lead to, and nothing may arrive.
    var forbiddenPort: Int { ports[24] }
    var consolePort: Int { ports[25] }
    /// Where traces go.
    var tracePort: Int { ports[26] }
    /// The first of those of the bad tenants.
    var badTenantsPort: Int { ports[27] }

    /// What every process has. The database is the default one, without passwords; the servers have TLS where they are
    /// hosts of their own.
    var base: [String: String] {
        [
            "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "", "HOME": folder.path,
            "MSS_ENVIRONMENT": "development",
        ]
    }

    /// What every process of ours has beside that.
    var traces: [String: String] {
        ["MSS_TRACE_ENDPOINT": "http://127.0.0.1:\(tracePort)/v1/traces", "MSS_TRACE_ONE_IN": "10"]
    }

    /// The broker, as a tier's user.
    func amqp(_ tier: String) -> [String: String] {
        [
            "MSS_AMQP_PORT": "\(rabbitPort)", "MSS_AMQP_USER": tier,
            "MSS_AMQP_PASSWORD_FILE": folder.appending(path: "secrets/amqp_\(tier)").path,
        ].merging(overTLS("AMQP", "rabbitmq")) { $1 }
    }

    private func overTLS(_ server: String, _ host: String) -> [String: String] {
        guard TestHost.areSeparate else { return [:] }
        return [
            "MSS_\(server)_HOST": host, "MSS_\(server)_TLS": "on",
            "MSS_\(server)_AUTHORITY_FILE": folder.appending(path: "tls/ca.pem").path,
        ]
    }

    /// The database; without a tier as its owner.
    func postgres(_ tier: String? = nil) -> [String: String] {
        ["MSS_POSTGRES_PORT": "\(postgresPort)", "MSS_POSTGRES_USER": tier ?? "mss"]
            .merging(overTLS("POSTGRES", "postgres")) { $1 }
    }

    /// The master keys, which the writers and the tool have.
    static let masterKeys = ["MSS_MASTER_KEYS": "test-1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]

    /// What a tier has of them.
    func sealingKeys(_ purpose: String) -> [String: String] { ["MSS_SEALING_KEYS": rings[purpose] ?? ""] }

    func gateway(_ number: Int) -> [String: String] {
        [
            "MSS_GATEWAY_ID": "gateway-\(number)", "MSS_GATEWAY_PORT": "\(gateways[number])",
            "MSS_GATEWAY_CERTIFICATE_FILE": folder.appending(path: "tls/server.pem").path,
            "MSS_GATEWAY_PRIVATE_KEY_FILE": folder.appending(path: "tls/server.key").path,
            // All devices come from one address, and at once.
            "MSS_GATEWAY_SOURCE_CONNECTIONS_PER_SECOND": "100000",
            "MSS_GATEWAY_HANDSHAKES_PER_SECOND": "100000", "MSS_GATEWAY_APP_CONNECTS_PER_SECOND": "100000",
            // Devices of a test stay on the gateway that it chose.
            "MSS_GATEWAY_REBALANCE_PER_SECOND": "0",
            // For the simple device of D14; devices of other tests keep to their own ten seconds.
            "MSS_GATEWAY_FIRST_RESEND_SECONDS": "1", "MSS_GATEWAY_MQTT": "on",
        ].merging(sealingKeys("device")) { $1 }
    }

    var console: [String: String] {
        [
            "MSS_CONSOLE_PORT": "\(consolePort)", "MSS_CONSOLE_DEVICE_PORT": "\(gateways[0])",
            "MSS_CONSOLE_DEVICE_PAGE": "https://127.0.0.1:\(gateways[0])/",
            "MSS_CONSOLE_SEALING_KEY": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        ].merging(postgres("console")) { $1 }
    }

    /// A tenant that fails is called again soon, and given up soon.
    var relay: [String: String] {
        [
            "MSS_RELAY_ALLOWED_HOSTS": "http://127.0.0.1:\(operationsPort),http://127.0.0.1:\(tenantPort)",
            "MSS_RELAY_LOOPBACK": "development", "MSS_RELAY_FIRST_PAUSE_MS": "200", "MSS_RELAY_ATTEMPTS": "4",
            "MSS_RELAY_TIMEOUT_MS": "2000", "MSS_RELAY_TENANT_CONCURRENCY": "16",
        ].merging(sealingKeys("callout")) { $1 }.merging(postgres("relay")) { $1 }
    }

    /// - Parameter allowed: further endpoints that it may call.
    func validator(allowed: String) -> [String: String] {
        [
            "MSS_VALIDATOR_ALLOWED_HOSTS":
                "http://127.0.0.1:\(tenantPort),http://127.0.0.1:\(canaryTenantPort),\(allowed)",
            "MSS_VALIDATOR_AUTHORITY_FILE": folder.appending(path: "tls/ca.pem").path,
            "MSS_VALIDATOR_LOOPBACK": "development",
        ].merging(sealingKeys("callout")) { $1 }
    }
}
