import ArgumentParser
import LocalEntities
import OfflineResources

/// `conflicts`: lists conflicts with both versions.
struct ConflictsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conflicts", abstract: "Lists conflicts between the device and the backend, with both versions.")

    @OptionGroup var folder: FolderOption

    func run() async throws {
        let device = try folder.device()
        var count = 0
        for row in try device.entities.findAll(Incident.self).sorted(by: { $0.id < $1.id })
        where row.state.replayFailure > 0 {
            let server = try device.entities.original(of: row)
            print("incident \(row.id)")
            print("  mine:   \(row.record.summary)")
            print("  theirs: \(server?.record.summary ?? "deleted")")
            count += 1
        }
        for resource in try await device.resources.loadOfflineResources() {
            guard let conflict = try await device.resources.conflict(of: resource.uri) else { continue }
            print("photo \(resource.uri.split(separator: "/").last ?? "")")
            print("  mine:   \(Self.size(conflict.local))")
            print("  theirs: \(Self.size(conflict.server))")
            count += 1
        }
        if count == 0 { print("no conflicts") }
    }

    private static func size(_ photo: [UInt8]?) -> String { photo.map { "\($0.count) bytes" } ?? "deleted" }
}
