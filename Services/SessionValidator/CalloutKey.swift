import Crypto

/// What a tenant knows our calls by (spec V2, reliability SEC12). While an instance has two such keys the older one
/// signs, so that a tenant can learn the new one before the old one is revoked.
struct CalloutKey: Sendable {
    let id: String
    let secret: SymmetricKey

    /// The secret as a text, for a mobile gateway, whose secrets are texts.
    var text: String { secret.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
}
