import ArgumentParser
import Foundation
import OfflineResources

/// `photo`: attaches a photo to an incident.
struct PhotoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "photo", abstract: "Attaches a photo to an incident.")

    @OptionGroup var folder: FolderOption
    @Argument(help: "The incident's key.")
    var incident: String
    @Argument(help: "The file.")
    var file: String

    func run() async throws {
        let device = try folder.device()
        _ = try device.incident(incident)
        let bytes = [UInt8](try Data(contentsOf: URL(filePath: file)))
        _ = try await device.resources.update(
            FieldDevice.photo(of: incident), body: bytes, contentType: "image/jpeg")
        print("incident \(incident): photo of \(bytes.count) bytes, not sent")
    }
}
