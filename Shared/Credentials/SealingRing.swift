package import Crypto
package import SyncModel

/// What seals and opens the secrets of one purpose, and nothing else: all that a process has of the master keys which
/// only opens secrets, so that one which was taken over gives away no others (reliability SEC16).
package struct SealingRing: Sendable {
    private static let form: UInt8 = 1

    private let purpose: AppKey.Purpose
    private let keys: [RingKey]

    /// Only `KeyRing` makes keys.
    init(purpose: AppKey.Purpose, keys: [RingKey]) {
        self.purpose = purpose
        self.keys = keys
    }

    /// A ring as `mssctl key ring` prints it: lines as those of master keys, each with the purpose after the id. Those
    /// of another purpose, and master keys, are refused.
    package init(text: String, for purpose: AppKey.Purpose) throws(KeyRing.Fault) {
        self.init(purpose: purpose, keys: try RingKey.read(text, for: purpose))
    }

    /// The text that is read back. It is secret.
    package var text: String { keys.map { $0.line(for: purpose) }.joined(separator: "\n") }

    /// Seals a secret with the newest key; nil for an empty ring.
    func seal(_ secret: [UInt8], of address: KeyAddress) -> [UInt8]? {
        guard let newest = keys.first,
            let box = try? AES.GCM.seal(secret, using: newest.key, authenticating: address.bytes),
            let sealed = box.combined
        else { return nil }
        return [Self.form, UInt8(newest.id.utf8.count)] + Array(newest.id.utf8) + sealed
    }

    /// The secret; nil when it was not sealed for this address, with none of these keys, or was changed.
    package func open(_ sealed: [UInt8], of address: KeyAddress) -> SymmetricKey? {
        guard let (id, box) = Self.parts(of: sealed), let key = keys.first(where: { $0.id == id })?.key,
            let sealedBox = try? AES.GCM.SealedBox(combined: box),
            let secret = try? AES.GCM.open(sealedBox, using: key, authenticating: address.bytes)
        else { return nil }
        return SymmetricKey(data: secret)
    }

    /// Seals a text that is not to be read in the database, such as a session's id; nil for an empty ring.
    package func seal(text: String, of address: KeyAddress) -> [UInt8]? { seal(Array(text.utf8), of: address) }

    /// The text; nil as for `open`.
    package func openText(_ sealed: [UInt8], of address: KeyAddress) -> String? {
        open(sealed, of: address).map { $0.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
    }

    /// The id of the key that sealed a secret; nil for what is no sealed secret.
    static func keyID(of sealed: [UInt8]) -> String? { parts(of: sealed)?.id }

    private static func parts(of sealed: [UInt8]) -> (id: String, box: ArraySlice<UInt8>)? {
        guard sealed.count > 2, sealed[0] == form, sealed.count > 2 + Int(sealed[1]) else { return nil }
        let end = 2 + Int(sealed[1])
        return (String(decoding: sealed[2..<end], as: UTF8.self), sealed[end...])
    }
}
