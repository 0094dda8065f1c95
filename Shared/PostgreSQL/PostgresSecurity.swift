/// TLS 1.2 or newer to the server: its certificate must be of the authority and for the host (libpq: SSL Support,
/// `verify-full`).
///
/// The files are read at each connect, so a renewed certificate needs no restart.
package struct PostgresSecurity: Sendable {
    /// The authorities that the server's certificate may come from; a PEM file.
    package var authorityFile: String
    /// A PEM file with a certificate for a server that asks for one; empty: none is shown.
    package var certificateFile: String
    /// The certificate's key, a PEM file; empty without certificate. The key must be readable by its owner
    /// alone, or by root and a group.
    package var privateKeyFile: String

    package init(authorityFile: String, certificateFile: String = "", privateKeyFile: String = "") {
        self.authorityFile = authorityFile
        self.certificateFile = certificateFile
        self.privateKeyFile = privateKeyFile
    }

    /// The libpq parameters (libpq: Parameter Key Words).
    var parameters: [(String, String)] {
        var parameters = [
            ("sslmode", "verify-full"), ("sslrootcert", authorityFile), ("ssl_min_protocol_version", "TLSv1.2"),
        ]
        if !certificateFile.isEmpty {
            parameters += [("sslcert", certificateFile), ("sslkey", privateKeyFile)]
        }
        return parameters
    }
}
