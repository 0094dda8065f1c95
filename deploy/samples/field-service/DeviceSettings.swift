import Foundation

/// The settings of a device, stored in its folder.
struct DeviceSettings: Codable, Sendable {
    var instance: String
    var user: String
    var device: String
    var host: String
    var port: Int
    /// The certificate authority of the gateway, as a PEM file.
    var authority: String
    /// The address of the tenant's backend for photos, such as `http://127.0.0.1:7195`.
    var backend: String

    private static func file(in folder: URL) -> URL { folder.appending(path: "device.json") }

    /// Reads the settings of a folder.
    ///
    /// - Throws: an error when the file is missing or unreadable.
    init(of folder: URL) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(contentsOf: Self.file(in: folder)))
    }

    init(
        instance: String, user: String, device: String, host: String, port: Int, authority: String, backend: String
    ) {
        self.instance = instance
        self.user = user
        self.device = device
        self.host = host
        self.port = port
        self.authority = authority
        self.backend = backend
    }

    /// Writes the settings to a folder, which is created when it is missing.
    func write(to folder: URL) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try JSONEncoder().encode(self).write(to: Self.file(in: folder), options: .atomic)
    }
}
