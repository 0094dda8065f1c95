package import SyncModel

/// What a sealed secret belongs to: it is bound to it, so that nobody who writes to the database can put one in
/// another's place.
package struct KeyAddress: Hashable, Sendable {
    package let instanceID: InstanceID
    package let keyID: String
    package let purpose: AppKey.Purpose

    package init(instanceID: InstanceID, keyID: String, purpose: AppKey.Purpose) {
        self.instanceID = instanceID
        self.keyID = keyID
        self.purpose = purpose
    }

    /// What the seal is bound to.
    var bytes: [UInt8] {
        LengthPrefixed.bytes(of: [instanceID.text, keyID, String(purpose.rawValue)].map { Array($0.utf8) })
    }
}
