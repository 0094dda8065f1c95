package import AMQP
import ConnectionThread

/// Settings that every process has.
package enum ProcessSettings {
    static let logLevel = SettingKey<String>.choice(
        "MSS_LOG_LEVEL", of: ["trace", "debug", "info", "notice", "warning", "error", "critical"], default: "info")
    static let logFormat = SettingKey<String>.choice("MSS_LOG_FORMAT", of: ["auto", "json", "text"], default: "auto")
    static let healthHost = SettingKey<String>.text(
        "MSS_HEALTH_HOST", "an address to listen on for health and metrics", example: "127.0.0.1", default: "127.0.0.1")
    static let healthPort = SettingKey<Int>.port("MSS_HEALTH_PORT", default: nil)
    static let amqpHost = SettingKey<String>.servers("MSS_AMQP_HOST", of: "the broker", portName: "MSS_AMQP_PORT")
    static let amqpPort = SettingKey<Int>.port("MSS_AMQP_PORT", default: 5_672)
    static let amqpUser = SettingKey<String>.text(
        "MSS_AMQP_USER", "the broker's user of this tier", example: "ingest", default: nil)
    /// The broker's password.
    package static let amqpPassword = SettingKey<String>.secret(
        "MSS_AMQP_PASSWORD", "the broker's password", default: "")
    static let amqpVirtualHost = SettingKey<String>.text(
        "MSS_AMQP_VHOST", "the broker's virtual host", example: "/", default: "/")

    static let amqpQueueType = SettingKey<String>.choice(
        "MSS_AMQP_QUEUES", of: AMQPQueueType.allCases.map(\.rawValue), default: AMQPQueueType.classic.rawValue)
    static let amqpTLS = SettingKey<String>.choice("MSS_AMQP_TLS", of: ["on", "off"], default: "off")
    static let amqpAuthorityFile = SettingKey<String>.text(
        "MSS_AMQP_AUTHORITY_FILE", "a PEM file with the authorities of the broker's certificate", example: "ca.pem",
        default: "")
    static let amqpCertificateFile = SettingKey<String>.text(
        "MSS_AMQP_CERTIFICATE_FILE", "a PEM file with this process's certificate, for a broker that asks for one",
        example: "client.pem", default: "")
    static let amqpPrivateKeyFile = SettingKey<String>.text(
        "MSS_AMQP_PRIVATE_KEY_FILE", "a PEM file with that certificate's key", example: "client.key", default: "")
    /// The default is production, where a process refuses to start with settings that are only for development.
    package static let environment = SettingKey<String>.choice(
        "MSS_ENVIRONMENT", of: [production, development], default: production)
    private static let production = "production"
    package static let development = "development"

    /// The collector of traces; empty: none.
    static let traceEndpoint = SettingKey<String>.text(
        "MSS_TRACE_ENDPOINT", "the URL of an OpenTelemetry collector (OTLP over HTTP)",
        example: "http://collector:4318/v1/traces", default: "")
    /// One push in this many is traced. Every process selects the same pushes.
    static let traceOneIn = SettingKey<Int>.integer("MSS_TRACE_ONE_IN", in: 1...1_000_000_000, default: 1_000)

    /// The nodes of the broker.
    static func amqpAddresses(_ settings: Settings) -> [ServerAddress] {
        ServerAddress.list(settings[amqpHost], defaultPort: settings[amqpPort]) ?? []
    }

    /// The settings of every process.
    package static let keys =
        amqpKeys + [
            logLevel.erased, logFormat.erased, healthHost.erased, healthPort.erased, traceEndpoint.erased,
            traceOneIn.erased, environment.erased,
        ]
    /// The settings of the broker, for tools.
    package static let amqpKeys = [
        amqpHost.erased, amqpPort.erased, amqpUser.erased, amqpPassword.erased, amqpVirtualHost.erased,
        amqpQueueType.erased, amqpTLS.erased, amqpAuthorityFile.erased, amqpCertificateFile.erased,
        amqpPrivateKeyFile.erased,
    ]
}

extension AMQPConfiguration {
    /// The broker as the settings name it.
    ///
    /// With several nodes the heartbeat is shorter, so that a node that hangs is given up after 3 s, and probes find a
    /// node that has lost the others. A wrong guess fails the open requests, and costs a connect to another node.
    package init(_ settings: Settings, connectionName: String) {
        let addresses = ProcessSettings.amqpAddresses(settings)
        self.init(
            addresses: addresses, user: settings[ProcessSettings.amqpUser],
            password: settings[ProcessSettings.amqpPassword], virtualHost: settings[ProcessSettings.amqpVirtualHost],
            security: settings[ProcessSettings.amqpTLS] == "off"
                ? nil
                : AMQPSecurity(
                    authorityFile: settings[ProcessSettings.amqpAuthorityFile],
                    certificateFile: settings[ProcessSettings.amqpCertificateFile],
                    privateKeyFile: settings[ProcessSettings.amqpPrivateKeyFile]),
            queueType: AMQPQueueType(rawValue: settings[ProcessSettings.amqpQueueType]) ?? .classic,
            connectionName: connectionName, heartbeat: addresses.count > 1 ? .seconds(2) : .seconds(10),
            probe: addresses.count > 1 ? .probe : nil)
    }
}
