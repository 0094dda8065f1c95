package import Crypto
import Foundation
package import SyncModel

/// The master keys under which tenants' secrets rest (reliability SEC16): the first one seals, all of them open.
///
/// A secret is sealed with a key that is derived from the master key for the secret's purpose. The oplog writers, which
/// seal, have this ring; a process that only opens has the `SealingRing` of its purpose, from which neither the master
/// keys nor those of another purpose can be found.
package struct KeyRing: Sendable {
    /// Why a ring's text is refused; it names lines, never what stands in them.
    package struct Fault: Error, CustomStringConvertible {
        package let description: String
    }

    private let keys: [RingKey]

    /// A ring without keys: it seals and opens nothing.
    package static let empty = KeyRing(keys: [])

    private init(keys: [RingKey]) { self.keys = keys }

    /// Whether it seals and opens nothing.
    package var isEmpty: Bool { keys.isEmpty }

    /// A ring as its file holds it: a line for each key, its id (1 to 16 of a–z, 0–9 and '-') and the Base64 text of
    /// 32 random bytes, the newest first. Empty lines and those that begin with '#' do not count.
    package init(text: String) throws(Fault) { keys = try RingKey.read(text, for: nil) }

    /// The keys that seal and open secrets of one purpose, by HKDF-SHA256 (RFC 5869) and under the same ids.
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

    /// Seals a secret for one key of one instance; it opens nowhere else. Nil for an empty ring.
    package func seal(_ secret: [UInt8], of address: KeyAddress) -> [UInt8]? {
        sealing(for: address.purpose).seal(secret, of: address)
    }

    /// The secret; nil when it was not sealed for this address, with none of these keys, or was changed.
    package func open(_ sealed: [UInt8], of address: KeyAddress) -> SymmetricKey? {
        sealing(for: address.purpose).open(sealed, of: address)
    }

    /// Whether a secret is sealed with the newest key, so that a rotation has nothing to do.
    package func isCurrent(_ sealed: [UInt8]) -> Bool {
        keys.first.map { SealingRing.keyID(of: sealed) == $0.id } ?? true
    }
}
