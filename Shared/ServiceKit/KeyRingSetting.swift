package import Credentials

/// The master keys, for the processes that seal or open tenants' secrets (reliability SEC16).
package enum KeyRingSetting {
    /// Without it instances can have no keys, and what is signed cannot be checked.
    package static let ring = SettingKey<KeyRing>(
        "MSS_MASTER_KEYS", form: "a line \"<id> <Base64 of 32 random bytes>\" for each master key, the newest first",
        example: "…", standard: .empty, isSecret: true
    ) { text in
        do throws(KeyRing.Fault) { return try KeyRing(text: text) } catch { return nil }
    }
}
