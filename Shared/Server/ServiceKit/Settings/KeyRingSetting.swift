package import Credentials
package import SyncModel

/// The keys that encrypt the secrets of tenants at rest, for the processes that seal or open them (SEC16).
package enum KeyRingSetting {
    /// The master keys, for the processes that seal: the oplog writers, and the tool, which derives the other rings
    /// from them. Without master keys, instances can have no keys.
    package static let masters = SettingKey<KeyRing>(
        "MSS_MASTER_KEYS", form: "a line \"<id> <Base64 of 32 random bytes>\" for each master key, the newest first",
        example: "…", standard: .empty, isSecret: true
    ) { text in
        do throws(KeyRing.Fault) { return try KeyRing(text: text) } catch { return nil }
    }

    /// The keys of one purpose, for processes that open secrets. Without them, signatures cannot be checked.
    package static func sealing(for purpose: AppKey.Purpose) -> SettingKey<SealingRing> {
        SettingKey<SealingRing>(
            "MSS_SEALING_KEYS", form: "the lines that `mssctl key ring --purpose \(purpose.word)` prints",
            example: "…", standard: KeyRing.empty.sealing(for: purpose), isSecret: true
        ) { text in
            do throws(KeyRing.Fault) { return try SealingRing(text: text, for: purpose) } catch { return nil }
        }
    }
}
