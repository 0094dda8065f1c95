package import Crypto
package import SyncModel
import Synchronization

/// Keys of instances in clear, opened once for each version of the control data: not every request need cost a
/// decryption.
package final class OpenedKeys: Sendable {
    private struct Sealed: Hashable {
        let address: KeyAddress
        let secret: [UInt8]
    }

    private let ring: SealingRing
    private let opened: Mutex<[Sealed: SymmetricKey]> = Mutex([:])

    package init(ring: SealingRing) { self.ring = ring }

    /// The key's secret; nil when none of the ring's keys opens it.
    package func secret(of key: AppKey, _ instanceID: InstanceID) -> SymmetricKey? {
        let address = KeyAddress(instanceID: instanceID, keyID: key.id, purpose: key.purpose)
        let sealed = Sealed(address: address, secret: key.sealedSecret)
        if let secret = opened.withLock({ $0[sealed] }) { return secret }
        guard let secret = ring.open(key.sealedSecret, of: address) else { return nil }
        opened.withLock { $0[sealed] = secret }
        return secret
    }

    /// Forgets all of them: some may have been revoked.
    package func forgetAll() { opened.withLock { $0 = [:] } }
}
