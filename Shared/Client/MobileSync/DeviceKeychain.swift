#if canImport(Security) && !os(macOS)
    import Foundation
    import Security

    /// Values of the device in the Keychain, which keeps them when the app is removed. They stay on this device: no
    /// backup has them. Not compiled here: Linux has no Keychain.
    enum DeviceKeychain {
        private static let service = "org.mobilesync.device"

        /// Returns a value of the Keychain. The first call creates and stores it.
        ///
        /// - Throws: `SyncError.store` when the Keychain cannot be used; an error of `make`.
        static func value(of name: String, _ make: () throws(SyncError) -> Data) throws(SyncError) -> Data {
            if let stored = try read(name) { return stored }
            var item = query(name)
            let value = try make()
            item[kSecValueData as String] = value
            // Readable in the background after the first unlock.
            item[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            let status = SecItemAdd(item as CFDictionary, nil)
            // An extension of the app was faster.
            if status == errSecDuplicateItem, let stored = try read(name) { return stored }
            guard status == errSecSuccess else { throw failure(status, name) }
            return value
        }

        private static func read(_ name: String) throws(SyncError) -> Data? {
            var item = query(name)
            item[kSecReturnData as String] = true
            var found: CFTypeRef?
            switch SecItemCopyMatching(item as CFDictionary, &found) {
            case errSecSuccess: return found as? Data
            case errSecItemNotFound: return nil
            case let status: throw failure(status, name)
            }
        }

        private static func query(_ name: String) -> [String: Any] {
            [
                kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service,
                kSecAttrAccount as String: name,
            ]
        }

        private static func failure(_ status: OSStatus, _ name: String) -> SyncError {
            SyncError(
                .store,
                "\(name) cannot be read or stored in the Keychain (status \(status)); try again after the first unlock")
        }
    }
#endif
