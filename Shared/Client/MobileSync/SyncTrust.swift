/// The certificate authorities that a client trusts when it connects.
public struct SyncTrust: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case system
        case certificateAuthority(file: String)
        case plaintext
    }

    let kind: Kind

    /// Trusts the authorities of the operating system.
    public static let system = SyncTrust(kind: .system)

    /// Trusts only the authorities in this PEM file, for private installations.
    public static func certificateAuthority(file: String) -> SyncTrust {
        SyncTrust(kind: .certificateAuthority(file: file))
    }

    /// No TLS, only for tests of this package on the loopback interface.
    package static let plaintext = SyncTrust(kind: .plaintext)
}
