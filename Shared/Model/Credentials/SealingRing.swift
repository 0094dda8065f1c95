import Concurrency
package import Crypto
package import SyncModel

/// The keys that seal and open the secrets of one purpose. A process that only opens has no other keys, so a
/// compromised process exposes no other secrets (SEC16).
package struct SealingRing: Sendable {
    private static let form: UInt8 = 1

    private let purpose: AppKey.Purpose
    private let keys: [RingKey]

    /// Only `KeyRing` derives keys.
    init(purpose: AppKey.Purpose, keys: [RingKey]) {
        self.purpose = purpose
        self.keys = keys
    }

    /// Reads a ring as printed by `mssctl key ring`: lines like those of master keys, with the purpose after the id.
    /// Keys of another purpose, and master keys, are refused.
    package init(text: String, for purpose: AppKey.Purpose) throws(KeyRing.Fault) {
        self.init(purpose: purpose, keys: try RingKey.read(text, for: purpose))
    }

    /// The text form for `init(text:for:)`. It is secret.
    package var text: String { keys.map { $0.line(for: purpose) }.joined(separator: "\n") }

    /// Seals a secret with the newest key; nil for an empty ring.
    func seal(_ secret: [UInt8], of address: KeyAddress) -> [UInt8]? {
        guard let newest = keys.first,
            let box = try? AES.GCM.seal(secret, using: newest.key, authenticating: address.bytes),
            let sealed = box.combined
        else { return nil }
        return [Self.form, UInt8(newest.id.utf8.count)] + Array(newest.id.utf8) + sealed
    }

    /// Opens a secret. The value is nil if it was sealed for another address or with an unknown key, or was changed.
    package func open(_ sealed: [UInt8], of address: KeyAddress) -> SymmetricKey? {
        guard let (id, box) = Self.parts(of: sealed), let key = keys.first(where: { $0.id == id })?.key,
            let sealedBox = try? AES.GCM.SealedBox(combined: box),
            let secret = try? AES.GCM.open(sealedBox, using: key, authenticating: address.bytes)
        else { return nil }
        return SymmetricKey(data: secret)
    }

    /// Seals a text that must not be readable in the database, such as a session id; nil for an empty ring.
    package func seal(text: String, of address: KeyAddress) -> [UInt8]? { seal(Array(text.utf8), of: address) }

    /// Opens a text; nil as for `open`.
    package func openText(_ sealed: [UInt8], of address: KeyAddress) -> String? {
        open(sealed, of: address).map { $0.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
    }

    /// The id of the key that sealed a secret; nil for other bytes.
    static func keyID(of sealed: [UInt8]) -> String? { parts(of: sealed)?.id }

    private static func parts(of sealed: [UInt8]) -> (id: String, box: ArraySlice<UInt8>)? {
        guard sealed.count > 2, sealed[0] == form, sealed.count > 2 + Int(sealed[1]) else { return nil }
        let end = 2 + Int(sealed[1])
        return (String(decoding: sealed[2..<end], as: UTF8.self), sealed[end...])
    }
}

/// A cache of decrypted keys of instances for one version of the control data, so that not every request needs a
/// decryption.
package final class OpenedKeys: Sendable {
    private struct Sealed: Hashable {
        let address: KeyAddress
        let secret: [UInt8]
    }

    private let ring: SealingRing
    private let opened: LockedValue<[Sealed: SymmetricKey]> = LockedValue([:])

    package init(ring: SealingRing) { self.ring = ring }

    /// The key's secret; nil if no key of the ring opens it.
    package func secret(of key: AppKey, _ instanceID: InstanceID) -> SymmetricKey? {
        let address = KeyAddress(instanceID: instanceID, keyID: key.id, purpose: key.purpose)
        let sealed = Sealed(address: address, secret: key.sealedSecret)
        if let secret = opened.withLock({ $0[sealed] }) { return secret }
        guard let secret = ring.open(key.sealedSecret, of: address) else { return nil }
        opened.withLock { $0[sealed] = secret }
        return secret
    }

    /// Removes all keys, because some may have been revoked.
    package func forgetAll() { opened.withLock { $0 = [:] } }
}
