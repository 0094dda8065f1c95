import Foundation

/// The PEM files of a listening port's TLS.
package struct CertificateFiles: Sendable {
    /// The certificate, followed by its intermediate certificates.
    package var certificateFile: String
    /// The certificate's key.
    package var privateKeyFile: String
    /// The authorities for client certificates; empty: clients need none.
    package var clientAuthorityFile: String

    package init(certificateFile: String, privateKeyFile: String, clientAuthorityFile: String = "") {
        self.certificateFile = certificateFile
        self.privateKeyFile = privateKeyFile
        self.clientAuthorityFile = clientAuthorityFile
    }

    /// Checks whether a port can be opened with these files now.
    ///
    /// - Throws: the fault and its correction.
    package func check() throws(ServerTLSError) { _ = try ServerIdentity(read(), applicationProtocols: []) }

    /// Reads the files.
    func read() throws(ServerTLSError) -> Content {
        func bytes(_ file: String) throws(ServerTLSError) -> [UInt8] {
            guard let data = FileManager.default.contents(atPath: file) else {
                throw ServerTLSError("the file \(file) cannot be read; check its path and its permissions")
            }
            return [UInt8](data)
        }
        return Content(
            certificate: try bytes(certificateFile), privateKey: try bytes(privateKeyFile),
            clientAuthority: clientAuthorityFile.isEmpty ? nil : try bytes(clientAuthorityFile))
    }

    /// The bytes of all files, read together.
    struct Content: Hashable, Sendable {
        let certificate: [UInt8]
        let privateKey: [UInt8]
        let clientAuthority: [UInt8]?
    }
}

/// Why certificate files are not usable, with the correction.
package struct ServerTLSError: Error, Hashable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
