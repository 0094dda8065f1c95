import Foundation

/// The settings of a stack's processes, with their ports.
struct StackSettings: Sendable {
    let folder: URL
    let ports: [Int]
    /// The sealing keys of each purpose, derived from the master keys.
    let rings: [String: String]

    // RabbitMQ uses the next two ports too.
    var rabbitPort: Int { ports[0] }
    var postgresPort: Int { ports[3] }
    var tenantPort: Int { ports[4] }
    var apis: [Int] { [ports[5], ports[6]] }
    var gateways: [Int] { [ports[7], ports[8]] }
    /// Ports of health and metrics, in the order of the processes.
    var healthPorts: [Int] { Array(ports[9..<22]) }
    /// The port of a test's tenant for device operations, which relays may call.
    var operationsPort: Int { ports[22] }
    /// The port of the canary run's tenant, which the validator may call.
    var canaryTenantPort: Int { ports[23] }
    /// The port to which bad tenants try to lead calls; no call may arrive.
    var forbiddenPort: Int { ports[24] }
    var consolePort: Int { ports[25] }
    /// The port of the trace collector.
    var tracePort: Int { ports[26] }
    /// The first port of the bad tenants.
    var badTenantsPort: Int { ports[27] }

    /// The connections without a Connect that a gateway holds.
    static let unconnectedMax = 200

    /// The settings of every process. The database is the default one, without passwords; the servers use TLS where
    /// they run on hosts of their own.
    var base: [String: String] {
        let own = ProcessInfo.processInfo.environment
        return [
            "PATH": own["PATH"] ?? "", "HOME": folder.path, "MSS_ENVIRONMENT": "development",
            // For the scripts of the servers (deploy/scripts/servers-root.sh); empty: this machine's.
            "SERVERS_ROOT": own["SERVERS_ROOT"] ?? "",
        ]
    }

    /// Further settings of every process of the service.
    var traces: [String: String] {
        ["MSS_TRACE_ENDPOINT": "http://127.0.0.1:\(tracePort)/v1/traces", "MSS_TRACE_ONE_IN": "10"]
    }

    /// The broker's settings as a tier's user.
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

    /// The database's settings; without a tier, as the database's owner.
    func postgres(_ tier: String? = nil) -> [String: String] {
        ["MSS_POSTGRES_PORT": "\(postgresPort)", "MSS_POSTGRES_USER": tier ?? "mss"]
            .merging(overTLS("POSTGRES", "postgres")) { $1 }
    }

    /// The number of store schemas, for the writers and the tool: `MSS_TEST_STORES`, otherwise 1.
    static let stores = ["MSS_POSTGRES_STORES": ProcessInfo.processInfo.environment["MSS_TEST_STORES"] ?? "1"]

    /// The master keys, for the writers and the tool.
    static let masterKeys = ["MSS_MASTER_KEYS": "test-1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]

    /// A tier's sealing keys.
    func sealingKeys(_ purpose: String) -> [String: String] { ["MSS_SEALING_KEYS": rings[purpose] ?? ""] }

    func gateway(_ number: Int) -> [String: String] {
        [
            "MSS_GATEWAY_ID": "gateway-\(number)", "MSS_GATEWAY_PORT": "\(gateways[number])",
            "MSS_GATEWAY_CERTIFICATE_FILE": folder.appending(path: "tls/server.pem").path,
            "MSS_GATEWAY_PRIVATE_KEY_FILE": folder.appending(path: "tls/server.key").path,
            // All devices connect from one address, and at once.
            "MSS_GATEWAY_SOURCE_CONNECTIONS_PER_SECOND": "100000",
            "MSS_GATEWAY_SUSPECT_HANDSHAKES_PER_SECOND": "100000", "MSS_GATEWAY_APP_CONNECTS_PER_SECOND": "100000",
            // So that a test can pass it soon.
            "MSS_GATEWAY_UNCONNECTED_MAX": "\(Self.unconnectedMax)",
            // A test machine is often late.
            "MSS_GATEWAY_LATENESS_MAX_MILLISECONDS": "60000",
            // A test's devices stay on their gateway.
            "MSS_GATEWAY_REBALANCE_PER_SECOND": "0",
            // For the simple device of D14; other devices use their own ten seconds.
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

    /// A failed call is retried soon, and soon is the last.
    var relay: [String: String] {
        [
            "MSS_RELAY_ALLOWED_HOSTS": "http://127.0.0.1:\(operationsPort),http://127.0.0.1:\(tenantPort)",
            "MSS_RELAY_LOOPBACK": "development", "MSS_RELAY_FIRST_PAUSE_MS": "200", "MSS_RELAY_ATTEMPTS": "4",
            "MSS_RELAY_TIMEOUT_MS": "2000", "MSS_RELAY_TENANT_CONCURRENCY": "16",
        ].merging(sealingKeys("callout")) { $1 }.merging(postgres("relay")) { $1 }
    }

    /// - Parameter allowed: further endpoints that the validator may call.
    func validator(allowed: String) -> [String: String] {
        [
            "MSS_VALIDATOR_ALLOWED_HOSTS":
                "http://127.0.0.1:\(tenantPort),http://127.0.0.1:\(canaryTenantPort),\(allowed)",
            "MSS_VALIDATOR_AUTHORITY_FILE": folder.appending(path: "tls/ca.pem").path,
            "MSS_VALIDATOR_LOOPBACK": "development",
        ].merging(sealingKeys("callout")) { $1 }
    }
}
