import Foundation
import NIOSSL

/// A TLS context made from files, with the expiry of its certificate.
struct ServerIdentity: Sendable {
    let context: NIOSSLContext
    /// The end of the certificate's validity, in seconds since 1970.
    let expiry: Int64

    /// - Throws: when the files do not make a context that clients would accept now.
    init(_ content: CertificateFiles.Content, applicationProtocols: [String]) throws(ServerTLSError) {
        let chain: [NIOSSLCertificate]
        let key: NIOSSLPrivateKey
        do { chain = try NIOSSLCertificate.fromPEMBytes(content.certificate) } catch {
            throw ServerTLSError("the certificate is not a complete PEM file (\(error)); write it again")
        }
        guard let leaf = chain.first else { throw ServerTLSError("the certificate file is empty; write it again") }
        do { key = try NIOSSLPrivateKey(bytes: content.privateKey, format: .pem) } catch {
            throw ServerTLSError("the key is not a complete PEM file (\(error)); write it again")
        }
        let now = Int64(Date().timeIntervalSince1970)
        (expiry, context) = (
            Int64(leaf.notValidAfter),
            try Self.context(chain, key, content.clientAuthority, applicationProtocols)
        )
        guard Int64(leaf.notValidBefore) <= now, now < expiry else {
            throw ServerTLSError("the certificate is not valid now; renew it, or correct the clock")
        }
    }

    private static func context(
        _ chain: [NIOSSLCertificate], _ key: NIOSSLPrivateKey, _ clientAuthority: [UInt8]?,
        _ applicationProtocols: [String]
    ) throws(ServerTLSError) -> NIOSSLContext {
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = applicationProtocols
        if let clientAuthority {
            guard let roots = try? NIOSSLCertificate.fromPEMBytes(clientAuthority), !roots.isEmpty else {
                throw ServerTLSError("the client authority is not a complete PEM file; write it again")
            }
            configuration.trustRoots = .certificates(roots)
            // Clients have no host name to verify, but must show a certificate of the authority.
            configuration.certificateVerification = .noHostnameVerification
        }
        do { return try NIOSSLContext(configuration: configuration) } catch {
            throw ServerTLSError("certificate and key do not fit together (\(error)); replace both")
        }
    }
}
