/// A certificate that a client shows to a gateway that asks devices for one.
public struct SyncIdentity: Sendable, Hashable {
    /// The certificate, then those between it and its authority; a PEM file.
    public var certificateFile: String
    /// The certificate's key; a PEM file.
    public var privateKeyFile: String

    /// Names the files; they are read when the client is made.
    public init(certificateFile: String, privateKeyFile: String) {
        self.certificateFile = certificateFile
        self.privateKeyFile = privateKeyFile
    }
}
