import Foundation
import NIOSSL

/// A TLS context made from files, and how long its certificate is good.
struct ServerIdentity: Sendable {
    let context: NIOSSLContext
    /// The end of the certificate's validity, in seconds since 1970.
    let expiry: Int64

    /// - Throws: when the files do not make a context that callers would accept now.
    init(_ content: CertificateFiles.Content, applicationProtocols: [String]) throws(ServerTLSError) {
        let chain: [NIOSSLCertificate]
        let key: NIOSSLPrivateKey
        do { chain = try NIOSSLCertificate.fromPEMBytes(content.certificate) } catch {
            throw ServerTLSError("the certificate is no complete PEM file (\(error)); write it anew")
        }
        guard let leaf = chain.first else { throw ServerTLSError("the certificate file is empty; write it anew") }
        do { key = try NIOSSLPrivateKey(bytes: content.privateKey, format: .pem) } catch {
            throw ServerTLSError("the key is no complete PEM file (\(error)); write it anew")
        }
        let now = Int64(Date().timeIntervalSince1970)
        (expiry, context) = (
            Int64(leaf.notValidAfter),
            try Self.context(chain, key, content.clientAuthority, applicationProtocols)
        )
        guard Int64(leaf.notValidBefore) <= now, now < expiry else {
            throw ServerTLSError("the certificate is not valid now; renew it, or set the clock")
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
                throw ServerTLSError("the callers' authority is no complete PEM file; write it anew")
            }
            configuration.trustRoots = .certificates(roots)
            // Callers have no host name to compare with; a certificate of the authority is required.
            configuration.certificateVerification = .noHostnameVerification
        }
        do { return try NIOSSLContext(configuration: configuration) } catch {
            throw ServerTLSError("certificate and key do not fit together (\(error)); replace both")
        }
    }
}
