import Credentials
public import Foundation

/// Creates and keeps a device id that stays the same across launches of the app (K5).
///
/// On iOS, tvOS, visionOS and watchOS, the id and its secret are in the Keychain, so they also stay the same across
/// re-installations of the app on the same device. On macOS and Linux, the id is in a file.
public enum DeviceIdentifier {
    /// Returns the device id of the app. The first call creates the id and stores it.
    ///
    /// Where the id is in a file, keep the file apart from the local store, and exclude it from backups that another
    /// device can restore. Two devices with one id end each other's connections.
    ///
    /// - Parameter folder: a folder that exists and is writable. The id of a file `device-id` in it goes into an empty
    ///   Keychain.
    /// - Throws: `SyncError.store` when the id cannot be read or created, for example on a phone that was not unlocked
    ///   since its start.
    public static func load(from folder: URL) throws(SyncError) -> String {
        #if canImport(Security) && !os(macOS)
            let stored = try DeviceKeychain.value(of: "device-id") { () throws(SyncError) in
                Data(try idInFile(in: folder).utf8)
            }
            return String(decoding: stored, as: UTF8.self)
        #else
            try idInFile(in: folder)
        #endif
    }

    /// Returns the secret of the device id from the Keychain, for `SyncClientConfiguration.deviceSecret`. The first
    /// call creates it. Nil on macOS and Linux, where the client keeps the secret in its local store.
    ///
    /// - Throws: as `load`.
    public static func loadSecret() throws(SyncError) -> [UInt8]? {
        #if canImport(Security) && !os(macOS)
            [UInt8](
                try DeviceKeychain.value(of: "device-secret") { Data(RandomBytes.make(LocalIdentity.secretBytes)) })
        #else
            nil
        #endif
    }

    private static func idInFile(in folder: URL) throws(SyncError) -> String {
        let file = folder.appendingPathComponent("device-id")
        do {
            // An unreadable file is an error: on a locked phone the file exists, and a new id would replace the
            // device's id.
            if FileManager.default.fileExists(atPath: file.path) {
                let id = try String(contentsOf: file, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
                if !id.isEmpty { return id }
            }
            let id = UUID().uuidString.lowercased()
            try Data(id.utf8).write(to: file, options: .atomic)
            return id
        } catch {
            throw SyncError(
                .store,
                "the device id in \(folder.path) cannot be read or created (\(error)); check access rights and space")
        }
    }
}
