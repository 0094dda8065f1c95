package import Credentials
package import SyncModel

/// The keys under which tenants' secrets rest, for the processes that seal or open them (reliability SEC16).
package enum KeyRingSetting {
    /// The master keys, for who seals: the oplog writers, and the tool that derives the other rings from them. Without
    /// them instances can have no keys.
    package static let masters = SettingKey<KeyRing>(
        "MSS_MASTER_KEYS", form: "a line \"<id> <Base64 of 32 random bytes>\" for each master key, the newest first",
        example: "…", standard: .empty, isSecret: true
    ) { text in
        do throws(KeyRing.Fault) { return try KeyRing(text: text) } catch { return nil }
    }

    /// The keys of one purpose, for who opens secrets of that purpose. Without them what is signed cannot be checked.
    package static func sealing(for purpose: AppKey.Purpose) -> SettingKey<SealingRing> {
        SettingKey<SealingRing>(
            "MSS_SEALING_KEYS", form: "the lines that `mssctl key ring --purpose \(purpose.word)` prints",
            example: "…", standard: KeyRing.empty.sealing(for: purpose), isSecret: true
        ) { text in
            do throws(KeyRing.Fault) { return try SealingRing(text: text, for: purpose) } catch { return nil }
        }
    }
}
