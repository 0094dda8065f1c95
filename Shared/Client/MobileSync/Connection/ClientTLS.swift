import DeviceProtocol
import NIOCore
import NIOSSL

/// The TLS of a client's connections: the context, and the authorities that have to sign the gateway's certificate.
struct ClientTLS: Sendable {
    private let context: NIOSSLContext
    private let trust: SyncTrust
    /// The names of the authorities; empty for those of the operating system.
    private let authorities: [String]

    /// Returns nil when the connections have no TLS.
    ///
    /// - Throws: `SyncError.trust` when the files of the authority or of the identity cannot be read.
    init?(_ trust: SyncTrust, _ identity: SyncIdentity?) throws(SyncError) {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        tls.applicationProtocols = [DeviceProtocolLimits.applicationProtocol]
        var certificates: [NIOSSLCertificate] = []
        do {
            switch trust.kind {
            case .plaintext: return nil
            case .system: break
            case .certificateAuthority(let file):
                certificates = try NIOSSLCertificate.fromPEMFile(file)
                tls.trustRoots = .certificates(certificates)
            }
            if let identity {
                tls.certificateChain = try NIOSSLCertificate.fromPEMFile(identity.certificateFile)
                    .map { .certificate($0) }
                tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: identity.privateKeyFile, format: .pem))
            }
            context = try NIOSSLContext(configuration: tls)
        } catch {
            throw SyncError(
                .trust, "the authority's or the identity's files cannot be used (\(error)); check their paths")
        }
        self.trust = trust
        authorities = certificates.map(Self.name)
    }

    /// Returns the handler of a connection to a host.
    func handler(to host: String) throws -> NIOSSLClientHandler {
        // TLS has no server name for an address. The certificate check compares the address.
        let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
        return try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : host)
    }

    /// Returns the error for the app when a connection failed because of the gateway's certificate; nil for any other
    /// failure.
    func refusal(of error: any Error, at address: GatewayAddress) -> SyncError? {
        switch error {
        case NIOSSLError.handshakeFailed(let reason) where "\(reason)".contains("CERTIFICATE_VERIFY_FAILED"):
            return SyncError(
                .certificate,
                """
                the gateway \(address.host):\(address.port) showed a certificate that is not signed by \(expected), or \
                is not valid now; check the authority's file and the clock of the device
                """)
        case let error as NIOSSLExtraError where error == .failedToValidateHostname:
            return SyncError(
                .certificate,
                """
                the gateway \(address.host):\(address.port) showed a certificate of \(expected) that does not name \
                \(address.host); connect to a name of the certificate
                """)
        default: return nil
        }
    }

    private var expected: String {
        guard case .certificateAuthority(let file) = trust.kind else { return "an authority of the operating system" }
        return "the authority \(authorities.joined(separator: " or ")) (\(file))"
    }

    /// The common name of a certificate's subject, from its description, which is the only public text with it.
    private static func name(of certificate: NIOSSLCertificate) -> String {
        let parts = certificate.description.split(whereSeparator: { $0 == ";" || $0 == "<" || $0 == ">" })
        let name = parts.first { $0.hasPrefix("common_name=") }?.dropFirst("common_name=".count)
        return name.map { "\"\($0)\"" } ?? "without a common name"
    }
}
