import ArgumentParser
import LocalEntities
import OfflineResources

/// `list`: lists the data on the device.
struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the data on the device.",
        discussion: "C, U and D are changes that the backend does not have yet; ! is one that it refused.")

    @OptionGroup var folder: FolderOption

    func run() async throws {
        let device = try folder.device()
        for row in try device.entities.findAll(Technician.self).sorted(by: { $0.id < $1.id }) {
            print("\(Self.mark(row.state)) technician \(row.id): \(row.record.summary)")
        }
        for row in try device.entities.findAll(Incident.self).sorted(by: { $0.id < $1.id }) {
            let photo = try await device.resources.fetchFile(
                FieldDevice.photo(of: row.id), policy: .init(fetchPolicy: .fetchFromCache))
            let words = photo.map { ", photo of \($0.body.count) bytes\($0.hasOfflineUpdates ? ", not sent" : "")" }
            print("\(Self.mark(row.state)) incident \(row.id): \(row.record.summary)\(words ?? "")")
        }
    }

    private static func mark(_ state: PendingState) -> String {
        guard state.isPending else { return " " }
        return state.replayFailure > 0 ? "!" : state.pendingChange.rawValue
    }
}
