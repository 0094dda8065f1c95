/// Whose certificates a client believes when it connects.
public struct SyncTrust: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case system
        case certificateAuthority(file: String)
        case plaintext
    }

    let kind: Kind

    /// The authorities that the operating system trusts.
    public static let system = SyncTrust(kind: .system)

    /// Only the authorities in this PEM file; for private installations.
    public static func certificateAuthority(file: String) -> SyncTrust {
        SyncTrust(kind: .certificateAuthority(file: file))
    }

    /// No TLS at all; only for tests of this package on loopback.
    package static let plaintext = SyncTrust(kind: .plaintext)
}
