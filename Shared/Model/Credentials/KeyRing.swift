package import Crypto
import Foundation
package import SyncModel

/// The master keys that protect tenants' secrets at rest (SEC16). The first one seals, all of them open.
///
/// A secret is sealed with a key that is derived from the master key for the secret's purpose. The oplog writers seal,
/// so they have this ring. A process that only opens has the `SealingRing` of its purpose, from which the master keys
/// and the keys of other purposes cannot be derived.
package struct KeyRing: Sendable {
    /// Why a ring's text is refused. It contains line numbers, never content.
    package struct Fault: Error, CustomStringConvertible {
        package let description: String
    }

    private let keys: [RingKey]

    /// A ring without keys.
    package static let empty = KeyRing(keys: [])

    private init(keys: [RingKey]) { self.keys = keys }

    /// Whether the ring has no keys, so that it can neither seal nor open.
    package var isEmpty: Bool { keys.isEmpty }

    /// Reads a key file: one line for each key, with its id (1 to 16 of a–z, 0–9 and '-') and the Base64 text of 32
    /// random bytes, the newest first. Empty lines and lines that begin with '#' are ignored.
    package init(text: String) throws(Fault) { keys = try RingKey.read(text, for: nil) }

    /// The derived keys of one purpose, by HKDF-SHA256 (RFC 5869), with the same ids.
    package func sealing(for purpose: AppKey.Purpose) -> SealingRing {
        let info = Data("mss seal \(purpose.word)".utf8)
        let derived = keys.map { master in
            RingKey(
                id: master.id,
                key: HKDF<SHA256>.deriveKey(
                    inputKeyMaterial: master.key, info: info, outputByteCount: RingKey.bytes))
        }
        return SealingRing(purpose: purpose, keys: derived)
    }

    /// Seals a secret for one key of one instance; it cannot be opened for another. The value is nil for an empty ring.
    package func seal(_ secret: [UInt8], of address: KeyAddress) -> [UInt8]? {
        sealing(for: address.purpose).seal(secret, of: address)
    }

    /// Opens a secret. The value is nil if it was sealed for another address or with an unknown key, or was changed.
    package func open(_ sealed: [UInt8], of address: KeyAddress) -> SymmetricKey? {
        sealing(for: address.purpose).open(sealed, of: address)
    }

    /// Whether the secret is sealed with the newest key, so that a rotation need not seal it again.
    package func isCurrent(_ sealed: [UInt8]) -> Bool {
        keys.first.map { SealingRing.keyID(of: sealed) == $0.id } ?? true
    }
}

/// The owner of a sealed secret. The seal contains it, so that a writer to the database cannot move a secret to another
/// owner.
package struct KeyAddress: Hashable, Sendable {
    package let instanceID: InstanceID
    package let keyID: String
    package let purpose: AppKey.Purpose

    package init(instanceID: InstanceID, keyID: String, purpose: AppKey.Purpose) {
        self.instanceID = instanceID
        self.keyID = keyID
        self.purpose = purpose
    }

    /// The authenticated data of the seal.
    var bytes: [UInt8] {
        LengthPrefixed.bytes(of: [instanceID.text, keyID, String(purpose.rawValue)].map { Array($0.utf8) })
    }
}
