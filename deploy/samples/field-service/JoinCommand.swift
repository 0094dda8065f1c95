import ArgumentParser
import Foundation

/// `join`: makes a folder a device.
struct JoinCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "join", abstract: "Makes a folder a device.")

    @OptionGroup var folder: FolderOption
    @Option(help: "The user of the device.")
    var user: String
    @Option(help: "The device id.")
    var device: String
    @Option(help: "The instance.")
    var instance = "field_app"
    @Option(help: "The gateway's address.")
    var host = "127.0.0.1"
    @Option(help: "The gateway's port.")
    var port = 7443
    @Option(help: "The authority that signed the gateway's certificate, as a PEM file.")
    var ca = ".local/tls/ca.pem"
    @Option(help: "The backend's address, for photos.")
    var backend = "http://127.0.0.1:7195"

    func run() throws {
        let authority = URL(filePath: ca).standardizedFileURL.path
        try DeviceSettings(
            instance: instance, user: user, device: device, host: host, port: port, authority: authority,
            backend: backend
        ).write(to: URL(filePath: folder.folder))
        print("\(folder.folder) is the device \(device) of \(user)")
    }
}
