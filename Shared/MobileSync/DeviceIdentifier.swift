public import Foundation

/// A device id that stays the same across launches of the app (spec K5).
public enum DeviceIdentifier {
    /// The id that this folder holds; made and stored at the first call.
    ///
    /// Keep the file apart from the local store, and out of backups that go to another device: two devices with one id
    /// end each other's connections.
    ///
    /// - Parameter folder: exists and can be written to.
    /// - Throws: `SyncError.store` when the file can be neither read nor made.
    public static func load(from folder: URL) throws(SyncError) -> String {
        let file = folder.appendingPathComponent("device-id")
        do {
            // A file that is there and cannot be read, as on a phone that is still locked, must not lose its id.
            if FileManager.default.fileExists(atPath: file.path) {
                let id = try String(contentsOf: file, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
                if !id.isEmpty { return id }
            }
            let id = UUID().uuidString.lowercased()
            try Data(id.utf8).write(to: file, options: .atomic)
            return id
        } catch {
            throw SyncError(
                .store, "the device id in \(folder.path) cannot be read or made (\(error)); check rights and space")
        }
    }
}
