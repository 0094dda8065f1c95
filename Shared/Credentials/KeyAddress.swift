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

    /// Each part with its length before it, so that no two addresses read alike (reliability SEC10).
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        for part in [instanceID.text, keyID, String(purpose.rawValue)] {
            withUnsafeBytes(of: UInt32(part.utf8.count).bigEndian) { bytes.append(contentsOf: $0) }
            bytes.append(contentsOf: part.utf8)
        }
        return bytes
    }
}
