import ArgumentParser
import Foundation
import LocalEntities
import MobileSync
import OfflineResources

/// `sync`: connects until all changes are sent and all data is received.
struct SyncCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync", abstract: "Sends local changes and receives new data.",
        discussion: "Ends with status 1 when it does not finish in time; no change is lost.")

    @OptionGroup var folder: FolderOption
    @Option(help: "The longest time, in seconds.")
    var seconds = 30

    func run() async throws {
        let device = try folder.device()
        device.resources.setOfflineMode(false)
        let isDone = try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await device.client.run()
                return false
            }
            group.addTask {
                try await EntitySynchroniser(store: device.entities, feed: device.client, logger: device.logger).run()
                return false
            }
            group.addTask {
                try await device.client.feed(device.resources, logger: device.logger)
                return false
            }
            group.addTask { [seconds] in
                try await Task.sleep(for: .seconds(seconds))
                return false
            }
            group.addTask {
                try await Self.exchange(device)
                return true
            }
            defer { group.cancelAll() }
            return try await group.next() ?? false
        }
        for line in Set(device.report.results).sorted() { print(line) }
        guard isDone else {
            print("offline: the remaining changes are sent with the next sync")
            throw ExitCode.failure
        }
        print("in sync")
    }

    /// Sends and receives entities through the client, and photos by HTTP.
    private static func exchange(_ device: FieldDevice) async throws {
        while try await !isSynchronised(device) { try await Task.sleep(for: .milliseconds(50)) }
        let photos = try await device.resources.synchronise()
        if photos.applied > 0 { print("photos sent: \(photos.applied)") }
        if photos.conflicts > 0 { print("photos in conflict: \(photos.conflicts)") }
        // A sent photo causes a push: its incident has a new photo.
        while try await !isSynchronised(device) { try await Task.sleep(for: .milliseconds(50)) }
        for row in try device.entities.findAll(Incident.self) where row.photo != nil {
            _ = try await device.resources.fetchFile(FieldDevice.photo(of: row.id))
        }
    }

    /// Whether every submitted operation has its result and all waiting data has arrived.
    private static func isSynchronised(_ device: FieldDevice) async throws -> Bool {
        guard device.client.isCaughtUp, try device.client.pendingOperations().isEmpty else { return false }
        for type in [Incident.entityType, Technician.entityType]
        where try device.entities.pendingRows(type.name).contains(where: { $0.state.replayPending > 0 }) {
            return false
        }
        return try await device.client.channelSummaries().allSatisfy { $0.unconfirmed == 0 && $0.notReceived == 0 }
    }
}
