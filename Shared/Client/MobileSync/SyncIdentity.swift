/// A client certificate for gateways that require one.
public struct SyncIdentity: Sendable, Hashable {
    /// A PEM file with the device's certificate, followed by the intermediate certificates.
    public var certificateFile: String
    /// A PEM file with the private key of the certificate.
    public var privateKeyFile: String

    /// Names the two files. `SyncClient.init` reads them.
    public init(certificateFile: String, privateKeyFile: String) {
        self.certificateFile = certificateFile
        self.privateKeyFile = privateKeyFile
    }
}
