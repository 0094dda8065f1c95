import ArgumentParser
import DeviceProtocol
import Foundation
import NIOCore
import NIOSSL
import ToolSupport

/// The service that a load run addresses.
struct LoadTarget: ParsableArguments {
    /// Address of a server.
    struct Address: Hashable, Sendable {
        let host: String
        let port: Int
    }

    @Option(help: "API addresses, host:port, comma separated.")
    var api = "127.0.0.1:7080"
    @Option(help: "Gateway addresses, host:port, comma separated.")
    var gateway = "127.0.0.1:7443"
    @Option(help: "File with the certificate authority of the gateways.")
    var ca = ".local/tls/ca.pem"
    @Option(help: "The instance.")
    var instance = "demo_app"
    @Option(help: "Sync ID with target user; the Sync ID of the scenario when absent.")
    var bizType: String?
    @Option(help: "Immediate global Sync ID; the Sync ID of the scenario when absent.")
    var globalBizType: String?
    @Option(help: "Port of the simulated tenant for device operations; the relay URL of the instance must name it.")
    var tenantPort = 7191
    @Option(help: "Response time of the simulated tenant, in milliseconds.")
    var tenantDelay = 0
    @OptionGroup var signing: SigningArguments
    @OptionGroup var appKey: AppKeyOptions

    func validate() throws {
        _ = (try Self.addresses(api), try Self.addresses(gateway))
        guard FileManager.default.isReadableFile(atPath: ca) else {
            throw ValidationError("no certificate authority at \(ca): run deploy/up, or name the file with --ca")
        }
    }

    /// The API addresses, not empty.
    var apis: [Address] { (try? Self.addresses(api)) ?? [] }
    /// The gateway addresses, not empty.
    var gateways: [Address] { (try? Self.addresses(gateway)) ?? [] }

    /// The resolved API addresses.
    var apiAddresses: [SocketAddress] { get throws { try apis.map(Self.resolved) } }
    /// The resolved gateway addresses.
    var gatewayAddresses: [SocketAddress] { get throws { try gateways.map(Self.resolved) } }

    /// TLS context of a device.
    func tls() throws -> NIOSSLContext {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(ca)
        tls.applicationProtocols = [DeviceProtocolLimits.applicationProtocol]
        return try NIOSSLContext(configuration: tls)
    }

    private static func resolved(_ address: Address) throws -> SocketAddress {
        try SocketAddress.makeAddressResolvingHost(address.host, port: address.port)
    }

    private static func addresses(_ text: String) throws -> [Address] {
        let addresses = try text.split(separator: ",").map { text in
            let parts = text.split(separator: ":")
            guard parts.count == 2, let port = Int(parts[1]) else { throw ValidationError("\(text) is not host:port") }
            return Address(host: String(parts[0]), port: port)
        }
        guard !addresses.isEmpty else { throw ValidationError("host:port is missing") }
        return addresses
    }
}
