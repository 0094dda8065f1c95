public import Foundation

/// Creates and keeps a device id that stays the same across launches of the app (K5).
public enum DeviceIdentifier {
    /// Returns the device id that is stored in a folder. The first call creates the id and stores it.
    ///
    /// Keep this file apart from the local store, and exclude it from backups that another device can restore. Two
    /// devices with one id end each other's connections.
    ///
    /// - Parameter folder: a folder that exists and is writable.
    /// - Throws: `SyncError.store` when the file cannot be read or created.
    public static func load(from folder: URL) throws(SyncError) -> String {
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
