import Logging
import ServerTLS
import ServiceKit
import SyncModel

/// The settings of the ingest API, without the common ones.
enum IngestSettings {
    /// The address on which the API listens for backends.
    static let host = SettingKey<String>.text(
        "MSS_INGEST_HOST", "an address of this host to listen on", example: "0.0.0.0", default: "127.0.0.1")
    /// Port of the API.
    static let port = SettingKey<Int>.port("MSS_INGEST_PORT", default: 7_080)
    /// With certificate and key the port serves HTTPS; without both, plain HTTP.
    static let certificateFile = SettingKey<String>.text(
        "MSS_INGEST_CERTIFICATE_FILE", "a PEM file with the certificate chain, for HTTPS", example: "server.pem",
        default: "")
    static let privateKeyFile = SettingKey<String>.text(
        "MSS_INGEST_PRIVATE_KEY_FILE", "a PEM file with the private key, for HTTPS", example: "server.key", default: "")
    /// When set, the TLS handshake accepts only backends with a certificate of these authorities.
    static let clientAuthorityFile = SettingKey<String>.text(
        "MSS_INGEST_CLIENT_AUTHORITY_FILE",
        "a PEM file with the authorities that backends' certificates must come from",
        example: "backends-ca.pem", default: "")
    /// Whether a balancer in front terminates TLS; plain HTTP is then allowed on every address.
    static let tlsInFront = SettingKey<String>.choice("MSS_INGEST_TLS_IN_FRONT", of: ["on", "off"], default: "off")
    /// Networks, beside this machine, from which plain HTTP is accepted. Payloads are readable in transit there.
    static let plainNetworks = SettingKey<[String]>.list(
        "MSS_INGEST_PLAIN_HTTP_NETWORKS",
        "networks from which plain HTTP is accepted when no certificate is set, comma-separated",
        example: "10.0.0.0/8,192.168.7.0/24"
    ) { IPRange($0) != nil }
    /// Pushes that can wait for the store at one time; further ones are answered 503.
    static let inFlightMaximum = SettingKey<Int>.integer("MSS_INGEST_IN_FLIGHT_MAX", in: 1...1_000_000, default: 4_096)
    /// Body bytes in memory at one time, over all connections; further calls are answered 503. The lower bound is the
    /// longest body.
    static let bodyBytes = SettingKey<Int>.integer(
        "MSS_INGEST_BODY_BYTES_MAX", in: APICall.batch.bodyBytes...1 << 40, default: BodyBudget.defaultBytes)

    /// Connections at one time; further ones wait until one closes.
    static let connections = SettingKey<Int>.integer(
        "MSS_INGEST_CONNECTIONS_MAX", in: 1...1_000_000, default: ConnectionLimits().connections)
    /// Connections of one source address at one time; further ones are answered 503. Behind a balancer all callers have
    /// its address, so set it to `MSS_INGEST_CONNECTIONS_MAX`.
    static let sourceConnections = SettingKey<Int>.integer(
        "MSS_INGEST_SOURCE_CONNECTIONS_MAX", in: 1...1_000_000, default: ConnectionLimits().sourceConnections)

    /// Another service with the same API that receives a copy of every push.
    static let mirrorURL = SettingKey<String>.text(
        "MSS_INGEST_MIRROR_URL", "http or https and the host of another service that gets every push as well",
        example: "https://old-mss.example.com", default: "")

    /// All keys, for the process's list of settings.
    static let keys = [
        host.erased, port.erased, certificateFile.erased, privateKeyFile.erased, clientAuthorityFile.erased,
        tlsInFront.erased, plainNetworks.erased, inFlightMaximum.erased, bodyBytes.erased, connections.erased,
        sourceConnections.erased,
        mirrorURL.erased, KeyRingSetting.sealing(for: .backend).erased,
    ]

    /// The connection limits of one process.
    static func limits(_ settings: Settings) -> ConnectionLimits {
        var limits = ConnectionLimits()
        limits.connections = settings[connections]
        limits.sourceConnections = settings[sourceConnections]
        return limits
    }

    /// The mirror; nil when none is set.
    static func mirror(_ settings: Settings, logger: Logger) -> PushMirror? {
        let url = settings[mirrorURL]
        return url.isEmpty ? nil : PushMirror(url: url, logger: logger)
    }

    /// The files of the port's TLS; nil for plain HTTP.
    static func files(_ settings: Settings) -> CertificateFiles? {
        let files = CertificateFiles(
            certificateFile: settings[certificateFile], privateKeyFile: settings[privateKeyFile],
            clientAuthorityFile: settings[clientAuthorityFile])
        let isPlain = files.certificateFile.isEmpty && files.privateKeyFile.isEmpty
        return isPlain && files.clientAuthorityFile.isEmpty ? nil : files
    }

    /// The port's certificates; nil for plain HTTP.
    static func certificates(_ settings: Settings, logger: Logger) throws -> ServerCertificates? {
        try files(settings).map { try ServerCertificates($0, applicationProtocols: ["http/1.1"], logger: logger) }
    }

    /// The networks from which plain HTTP is accepted; nil, when none is set: all.
    static func plainHTTPNetworks(_ settings: Settings, logger: Logger) -> PlainHTTPNetworks? {
        let named = settings[plainNetworks]
        guard !named.isEmpty else { return nil }
        logger.warning(
            "plain HTTP is accepted from these networks: payloads and responses are readable in transit",
            metadata: ["networks": "\(named.joined(separator: ","))"])
        return PlainHTTPNetworks(named.compactMap { IPRange($0) })
    }

    /// The faults of a combination of settings.
    static func problems(_ settings: Settings) -> [String] {
        guard let files = files(settings) else {
            let mayBePlain =
                StartRules.isLoopback(settings[host]) || settings[tlsInFront] == "on"
                || !settings[plainNetworks].isEmpty
                || settings[ProcessSettings.environment] == ProcessSettings.development
            return mayBePlain
                ? []
                : [
                    "MSS_INGEST_HOST: plain HTTP on \(settings[host]) would show every payload to the network; set "
                        + "MSS_INGEST_CERTIFICATE_FILE and MSS_INGEST_PRIVATE_KEY_FILE, "
                        + "or MSS_INGEST_TLS_IN_FRONT=on where a balancer in front ends TLS, "
                        + "or MSS_INGEST_PLAIN_HTTP_NETWORKS where callers of named networks cannot use HTTPS"
                ]
        }
        guard settings[plainNetworks].isEmpty else {
            return [
                "MSS_INGEST_PLAIN_HTTP_NETWORKS: this port is HTTPS; leave it out, or run another ingest for plain HTTP"
            ]
        }
        guard !files.certificateFile.isEmpty, !files.privateKeyFile.isEmpty else {
            return [
                "MSS_INGEST_CERTIFICATE_FILE, MSS_INGEST_PRIVATE_KEY_FILE: HTTPS needs both; set both, "
                    + "or neither of them and no MSS_INGEST_CLIENT_AUTHORITY_FILE for plain HTTP"
            ]
        }
        do throws(ServerTLSError) {
            try files.check()
            return []
        } catch {
            return ["MSS_INGEST_CERTIFICATE_FILE, _PRIVATE_KEY_FILE, _CLIENT_AUTHORITY_FILE: \(error)"]
        }
    }
}
