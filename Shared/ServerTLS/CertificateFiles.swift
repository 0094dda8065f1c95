import Foundation

/// The PEM files of a listening port's TLS.
package struct CertificateFiles: Sendable {
    /// The certificate, then those between it and its authority.
    package var certificateFile: String
    /// The certificate's key.
    package var privateKeyFile: String
    /// The authorities that a caller's certificate must come from; empty: callers need none.
    package var clientAuthorityFile: String

    package init(certificateFile: String, privateKeyFile: String, clientAuthorityFile: String = "") {
        self.certificateFile = certificateFile
        self.privateKeyFile = privateKeyFile
        self.clientAuthorityFile = clientAuthorityFile
    }

    /// Finds out whether a port can be opened with them now.
    ///
    /// - Throws: what is wrong with them, and what to do.
    package func check() throws(ServerTLSError) { _ = try ServerIdentity(read(), applicationProtocols: []) }

    /// What they hold now.
    func read() throws(ServerTLSError) -> Content {
        func bytes(_ file: String) throws(ServerTLSError) -> [UInt8] {
            guard let data = FileManager.default.contents(atPath: file) else {
                throw ServerTLSError("the file \(file) cannot be read; check its path and its rights")
            }
            return [UInt8](data)
        }
        return Content(
            certificate: try bytes(certificateFile), privateKey: try bytes(privateKeyFile),
            clientAuthority: clientAuthorityFile.isEmpty ? nil : try bytes(clientAuthorityFile))
    }

    /// The bytes of the files at one time.
    struct Content: Hashable, Sendable {
        let certificate: [UInt8]
        let privateKey: [UInt8]
        let clientAuthority: [UInt8]?
    }
}
