/// TLS 1.2 or newer to the broker: its certificate must be of the authority and for the host's name.
///
/// The files are read at each connect, so a renewed certificate needs no restart. The C library compares the host with
/// the certificate's DNS names only: the host must be given as a name, not as an address.
package struct AMQPSecurity: Sendable {
    /// The authorities that the broker's certificate may come from; a PEM file.
    package var authorityFile: String
    /// A PEM file with a certificate for a broker that asks for one; empty: none is shown.
    package var certificateFile: String
    /// The certificate's key, a PEM file; empty without certificate.
    package var privateKeyFile: String

    package init(authorityFile: String, certificateFile: String = "", privateKeyFile: String = "") {
        self.authorityFile = authorityFile
        self.certificateFile = certificateFile
        self.privateKeyFile = privateKeyFile
    }
}
