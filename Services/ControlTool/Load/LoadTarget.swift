import ArgumentParser
import DeviceProtocol
import Foundation
import NIOCore
import NIOSSL

/// Which service a load run is aimed at.
struct LoadTarget: ParsableArguments {
    /// Where a server is.
    struct Address: Hashable, Sendable {
        let host: String
        let port: Int
    }

    @Option(help: "The APIs, host:port, comma separated.")
    var api = "127.0.0.1:7080"
    @Option(help: "The gateways, host:port, comma separated.")
    var gateway = "127.0.0.1:7443"
    @Option(help: "The certificate authority of the gateways.")
    var ca = ".local/tls/ca.pem"
    @Option(help: "The instance.")
    var instance = "demo_app"
    @Option(help: "A Sync ID with user target; the scenario's when absent.")
    var bizType: String?
    @Option(help: "A global Sync ID that goes out at once; the scenario's when absent.")
    var globalBizType: String?
    @Option(help: "Where the run's own tenant takes operations; the instance's relay URL names it.")
    var tenantPort = 7191
    @Option(help: "How long that tenant takes for an operation, in milliseconds.")
    var tenantDelay = 0
    @OptionGroup var signing: SigningArguments
    @OptionGroup var appKey: AppKeyOptions

    func validate() throws {
        _ = (try Self.addresses(api), try Self.addresses(gateway))
        guard FileManager.default.isReadableFile(atPath: ca) else {
            throw ValidationError("no certificate authority at \(ca): run deploy/up, or give --ca")
        }
    }

    /// The APIs; never empty.
    var apis: [Address] { (try? Self.addresses(api)) ?? [] }
    /// The gateways; never empty.
    var gateways: [Address] { (try? Self.addresses(gateway)) ?? [] }

    /// The APIs as sockets want them.
    var apiAddresses: [SocketAddress] { get throws { try apis.map(Self.resolved) } }
    /// The gateways as sockets want them.
    var gatewayAddresses: [SocketAddress] { get throws { try gateways.map(Self.resolved) } }

    /// How a device of the gateways does TLS.
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
